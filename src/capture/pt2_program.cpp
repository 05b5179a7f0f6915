#include "capture/pt2_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "capture/pt2_graph.h"
#include "capture/pt2_names.h"

namespace renkei::capture {
namespace {

using program::StateKind;
using program::ValueId;

constexpr int64_t kSchemaMajor = 8;  // of torch/_export/serde/schema.py

void check_version(const json& exported, const Place& place) {
  const json& version = field(exported, "schema_version", place);
  const int64_t major = integer_of(field(version, "major", place), "major", place);
  if (major == kSchemaMajor) return;
  const json* torch = find_field(exported, "torch_version");
  place.refuse(
      fmt::format("it is of version {} of the export format{}, and Renkei reads version {}", major,
                  torch && torch->is_string()
                      ? fmt::format(" (PyTorch {})", torch->get<std::string>())
                      : "",
                  kSchemaMajor),
      major > kSchemaMajor ? "export the model with PyTorch 2.13"
                           : "export the model again with PyTorch 2.13 or newer");
}

// A parameter, buffer or constant, as the signature has it.
struct StateSpec {
  StateKind kind = StateKind::parameter;
  std::string name;
  std::string placeholder;  // its name in the graph
  bool persistent = true;
};

class ProgramReader {
 public:
  ProgramReader(const json& exported, const Weights& weights, const TiedNames& tied, Place place)
      : exported_(exported),
        weights_(weights),
        place_(std::move(place)),
        module_(field(exported, "graph_module", place_)),
        graph_(field(module_, "graph", place_)),
        signature_(field(module_, "signature", place_)),
        symbols_(find_field(exported, "range_constraints"), batch_name(), place_),
        reader_(result_.program, symbols_, place_) {
    for (const auto& [alias, name] : tied) tied_[alias] = name;
  }

  ReadProgram read() {
    collect_inputs();
    for (const StateKind kind : {StateKind::parameter, StateKind::buffer, StateKind::constant})
      for (const StateSpec& spec : state_)
        if (spec.kind == kind) add_state(spec);
    refuse_overlaps();
    for (const std::string& name : tensor_inputs_order_) add_input(name);
    reader_.read_nodes(graph_, scope_);
    read_outputs();
    result_.program.symbols = symbols_.all();
    program::check(result_.program, place_.text);
    return std::move(result_);
  }

 private:
  const json& input_specs() const {
    return list_of(field(signature_, "input_specs", place_), "input_specs", place_);
  }

  // The first symbol that is the first size of a tensor that users give.
  std::string batch_name() const {
    const json& tensors = field(graph_, "tensor_values", place_);
    for (const json& spec : input_specs()) {
      const json* user = find_field(spec, "user_input");
      const json* argument = user ? find_field(*user, "arg") : nullptr;
      const json* tensor = argument ? find_field(*argument, "as_tensor") : nullptr;
      const json* name = tensor ? find_field(*tensor, "name") : nullptr;
      const json* meta =
          name && name->is_string() ? find_field(tensors, name->get<std::string>()) : nullptr;
      const json* sizes = meta ? find_field(*meta, "sizes") : nullptr;
      if (!sizes || !sizes->is_array() || sizes->empty()) continue;
      if (std::string symbol = lone_symbol((*sizes)[0]); !symbol.empty()) return symbol;
    }
    return {};
  }

  std::string named(const json& spec, std::string_view key) const {
    return text_of(field(spec, key, place_), key, place_);
  }

  std::string placeholder(const json& spec) const {
    return named(field(spec, "arg", place_), "name");
  }

  void collect_inputs() {
    for (const json& input : input_specs()) {
      const auto [kind, spec] = tagged(input, "input_specs", place_);
      if (kind == "parameter")
        state_.push_back({StateKind::parameter, named(spec, "parameter_name"), placeholder(spec)});
      else if (kind == "buffer")
        state_.push_back({StateKind::buffer, named(spec, "buffer_name"), placeholder(spec),
                          boolean_of(field(spec, "persistent", place_), "persistent", place_)});
      else if (kind == "tensor_constant")
        state_.push_back(
            {StateKind::constant, named(spec, "tensor_constant_name"), placeholder(spec), false});
      else if (kind == "user_input")
        collect_user_input(field(spec, "arg", place_));
      else if (kind == "constant_input")
        scope_.bind(named(spec, "name"), constant(field(spec, "value", place_)), place_);
      else
        place_.refuse(fmt::format("it has an input of the kind '{}'", kind),
                      "Renkei runs models whose inputs are tensors and numbers");
    }
  }

  void collect_user_input(const json& argument) {
    const auto [kind, value] = tagged(argument, "user_input", place_);
    if (kind == "as_tensor")
      tensor_inputs_order_.push_back(named(value, "name"));
    else if (kind == "as_sym_int" && find_field(value, "as_name"))
      number_inputs_.insert(tensor_inputs_order_.emplace_back(named(value, "as_name")));
    else if (kind == "as_custom_obj")
      place_.refuse("an input is an object of a class of its own", "give tensors and numbers");
    // Others are numbers that were given when the model was exported: the graph repeats them.
  }

  // A text has no place in a graph of tensors; where one is used, it says so.
  program::Argument constant(const json& value) const {
    const program::Argument argument = read_argument(value, "constant input", scope_, place_);
    return std::holds_alternative<std::string>(argument) ? program::Argument(program::None{})
                                                         : argument;
  }

  const Weight* weight_of(const std::string& name) const {
    const auto found = weights_.find(name);
    return found == weights_.end() ? nullptr : &found->second;
  }

  // The state that this one is, by memory or by what the file says; null: none so far.
  program::State* same_state(const StateSpec& spec, const Weight* weight) {
    if (spec.kind == StateKind::constant) return nullptr;
    const auto tied = tied_.find(spec.name);
    for (size_t i = 0; i < result_.program.state.size(); ++i) {
      program::State& state = result_.program.state[i];
      const bool by_name = tied != tied_.end() && tied->second == state.name;
      if (state.kind == spec.kind &&
          (by_name || (kept_[i] && weight && weight->is_same_as(*kept_[i]))))
        return &state;
    }
    return nullptr;
  }

  void add_state(const StateSpec& spec) {
    const Weight* weight = weight_of(spec.name);
    if (program::State* same = find_same(spec, weight)) {
      check_same_form(spec, result_.program.value(same->value).name);
      same->aliases.push_back(spec.name);
      same->persistent = same->persistent || spec.persistent;
      scope_.bind(spec.placeholder, program::Reference{same->value}, place_);
      return;
    }
    const ValueId value = reader_.add_tensor(graph_, spec.placeholder, place_);
    const json& meta = field(field(graph_, "tensor_values", place_), spec.placeholder, place_);
    result_.program.state.push_back(
        {.name = spec.name,
         .kind = spec.kind,
         .value = value,
         .trainable = spec.kind == StateKind::parameter &&
                      boolean_of(field(meta, "requires_grad", place_), "requires_grad", place_),
         .persistent = spec.persistent});
    result_.tensors.push_back(tensor_of(spec, weight, result_.program.value(value)));
    kept_.push_back(weight);
    scope_.bind(spec.placeholder, program::Reference{value}, place_);
  }

  void check_same_form(const StateSpec& spec, const std::string& placeholder) const {
    const json& tensors = field(graph_, "tensor_values", place_);
    const json& a = field(tensors, spec.placeholder, place_);
    const json& b = field(tensors, placeholder, place_);
    for (const std::string_view part : {"sizes", "dtype"})
      if (field(a, part, place_) != field(b, part, place_))
        place_.refuse(fmt::format("'{}' is said to be another tensor, but its sizes or type differ",
                                  spec.name));
  }

  // Looks through all states only where there may be one.
  program::State* find_same(const StateSpec& spec, const Weight* weight) {
    const bool shared =
        weight && !weight->memory.empty() && !memories_.insert(weight->memory).second;
    return shared || tied_.contains(spec.name) ? same_state(spec, weight) : nullptr;
  }

  // The graph and the index of tensors must agree.
  StoredTensor tensor_of(const StateSpec& spec, const Weight* weight,
                         const program::Value& value) const {
    const Place place = place_.at(fmt::format("the tensor '{}'", spec.name));
    StoredTensor none{.dtype = value.dtype};
    for (const program::Size& size : value.sizes) {
      if (!size.is_number()) place.refuse("its sizes are not numbers");
      none.sizes.push_back(size.number());
    }
    if (!weight) return none;
    if (weight->tensor.dtype != value.dtype || weight->tensor.sizes != none.sizes)
      place.refuse("its sizes or type in the graph and in the index of tensors differ");
    return weight->tensor;
  }

  // Two parameters that share some elements but not all can't be trained as two.
  void refuse_overlaps() const {
    std::map<std::string_view, std::map<int64_t, size_t>> by_memory;
    for (size_t i = 0; i < kept_.size(); ++i) {
      if (result_.program.state[i].kind != StateKind::parameter || !kept_[i]) continue;
      if (kept_[i]->memory.empty() || kept_[i]->end == kept_[i]->first) continue;
      if (!by_memory[kept_[i]->memory].emplace(kept_[i]->first, i).second) refuse_overlap(i);
    }
    for (const auto& [memory, parameters] : by_memory) {
      int64_t end = 0;
      for (const auto& [first, i] : parameters) {
        if (first < end) refuse_overlap(i);
        end = kept_[i]->end;
      }
    }
  }

  [[noreturn]] void refuse_overlap(size_t i) const {
    place_.refuse(fmt::format("the parameter '{}' shares a part of its memory with another",
                              result_.program.state[i].name),
                  "make them one parameter, or clone() one of them");
  }

  void add_input(const std::string& name) {
    const ValueId value = number_inputs_.contains(name)
                              ? reader_.add_number(name, program::ValueKind::integer)
                              : reader_.add_tensor(graph_, name, place_);
    scope_.bind(name, program::Reference{value}, place_);
    result_.program.inputs.push_back({name, value});
  }

  void read_outputs() {
    const json& specs = list_of(field(signature_, "output_specs", place_), "output_specs", place_);
    const std::vector<std::string> names = output_names(module_);
    size_t users = 0;
    for (const json& spec : specs) users += find_field(spec, "user_output") ? 1 : 0;
    size_t position = 0;
    for (const json& output : specs) {
      const auto [kind, spec] = tagged(output, "output_specs", place_);
      if (kind == "user_output") {
        const std::string name = names.size() == users ? names[position] : std::string();
        add_output(field(spec, "arg", place_), name);
        ++position;
      } else if (kind == "loss_output") {
        add_output(json{{"as_tensor", field(spec, "arg", place_)}}, "loss");
      } else if (kind == "buffer_mutation") {
        write_buffer(named(spec, "buffer_name"), placeholder(spec));
      } else {
        refuse_output(kind, spec);
      }
    }
  }

  [[noreturn]] void refuse_output(std::string_view kind, const json& spec) const {
    const json* input = find_field(spec, "user_input_name");
    if (kind == "user_input_mutation" && input && input->is_string())
      place_.refuse(fmt::format("the model changes its input '{}'", input->get<std::string>()),
                    "let forward() work on a copy of it: x = x.clone()");
    if (kind.starts_with("gradient_to"))
      place_.refuse("it was exported together with its backward",
                    "export the model alone: Renkei computes the gradients");
    place_.refuse(fmt::format("it has an output of the kind '{}'", kind),
                  "Renkei runs models whose outputs are tensors");
  }

  // None and plain numbers among the results say nothing that is computed: they are left out.
  void add_output(const json& argument, std::string name) {
    const program::Argument result = read_argument(argument, "output", scope_, place_);
    const auto* reference = std::get_if<program::Reference>(&result);
    if (!reference) return;
    if (name.empty()) name = result_.program.value(reference->value).name;
    const std::string first = name;
    for (int i = 1; !output_names_.insert(name).second; ++i) name = fmt::format("{}_{}", first, i);
    result_.program.outputs.push_back({name, reference->value});
  }

  // Of a graph without writes: the new value of a buffer is one of its results.
  void write_buffer(const std::string& name, const std::string& value) {
    for (const program::State& state : result_.program.state) {
      if (state.kind != StateKind::buffer) continue;
      if (state.name != name &&
          std::find(state.aliases.begin(), state.aliases.end(), name) == state.aliases.end())
        continue;
      result_.program.ops.push_back({.target = "aten.copy_.default",
                                     .arguments = {{"self", program::Reference{state.value}},
                                                   {"src", scope_.find(value, place_)}},
                                     .outputs = {program::kNoValue},
                                     .no_grad = true});
      return;
    }
    place_.refuse(fmt::format("the buffer '{}' is written, but not there", name));
  }

  const json& exported_;
  const Weights& weights_;
  Place place_;
  const json& module_;
  const json& graph_;
  const json& signature_;
  ReadProgram result_;
  Symbols symbols_;
  GraphReader reader_;
  Scope scope_;
  std::vector<StateSpec> state_;
  std::vector<const Weight*> kept_;  // of the program's state
  std::set<std::string> memories_;
  std::map<std::string, std::string> tied_;  // alias → name
  std::vector<std::string> tensor_inputs_order_;
  std::set<std::string> number_inputs_;
  std::set<std::string> output_names_;
};

}  // namespace

ReadProgram read_exported_program(const json& exported, const Weights& weights,
                                  const TiedNames& tied, const Place& place) {
  check_version(exported, place);
  return ProgramReader(exported, weights, tied, place).read();
}

}  // namespace renkei::capture
