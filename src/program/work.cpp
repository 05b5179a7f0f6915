#include "program/work.h"

#include <algorithm>
#include <map>

#include "program/effects.h"

namespace renkei::program {
namespace {

using Sizes = std::vector<int64_t>;

double count_of(const Sizes& sizes) {
  double count = 1;
  for (const int64_t side : sizes) count *= static_cast<double>(side);
  return count;
}

class Counter {
 public:
  Counter(const Program& program, const Op& op, const SymbolValues& symbols)
      : program_(program), op_(op), symbols_(symbols), target_(parts_of(op.target)) {}

  Work work() const {
    if (is_free()) return {};
    Work work;
    double made = 0;
    const bool own_memory = !is_in_place();
    for (const ValueId id : op_.outputs) {
      if (id == kNoValue || program_.value(id).kind != ValueKind::tensor) continue;
      const int64_t bytes = bytes_of(program_.value(id), symbols_);
      made += count_of(sizes_of(program_.value(id), symbols_));
      work.traffic_bytes += static_cast<double>(bytes);
      if (own_memory) work.made_bytes += bytes;
    }
    work.traffic_bytes += read_bytes();
    work.products = products();
    work.flops = work.products > 0 ? work.products : made;
    if (target_.library == "renkei" && target_.name.starts_with("tp_")) add_exchange(work);
    return work;
  }

 private:
  // A dropout that drops nothing gives back its argument, as a conversion to the same type does.
  bool is_free() const {
    if (is_view(op_) || target_.library == "operator") return true;
    if (target_.library != "aten") return false;
    if (target_.name.ends_with("dropout") && !alias_of(op_).empty()) return !draws(op_);
    if (target_.name != "to" && target_.name != "type_as") return false;
    const std::vector<ValueId> given = references(op_);
    return !given.empty() && !op_.outputs.empty() && op_.outputs[0] != kNoValue &&
           program_.value(given[0]).dtype == program_.value(op_.outputs[0]).dtype;
  }

  void add_exchange(Work& work) const {
    struct Halves {
      int forward, backward;
    };
    static const std::map<std::string_view, Halves> known{
        {"tp_copy", {0, 2}},   {"tp_sum", {2, 0}},     {"tp_split", {0, 1}},
        {"tp_gather", {1, 0}}, {"tp_collect", {1, 1}}, {"tp_scatter", {1, 1}}};
    double bytes = 0;
    for (const ValueId id : {references(op_).front(), op_.outputs.front()})
      bytes = std::max(bytes, static_cast<double>(bytes_of(program_.value(id), symbols_)));
    const auto add = [](Work::Exchange& exchange, int halves, double of) {
      exchange = {halves, halves * of};
    };
    if (const auto found = known.find(target_.name); found != known.end()) {
      add(work.exchange_forward, found->second.forward, bytes);
      if (is_floating(program_.value(op_.outputs.front()).dtype))
        add(work.exchange_backward, found->second.backward, bytes);
    } else if (target_.name == "tp_cross_entropy") {  // the largest score, then two sums
      const Sizes scores = sizes("logits");
      add(work.exchange_forward, 4, scores.empty() ? 0 : 6.0 * static_cast<double>(scores[0]));
    }
  }

  bool is_in_place() const {
    const std::string shared = alias_of(op_);
    if (shared.empty()) return false;
    for (const std::string& name : writes(op_))
      if (name == shared) return true;
    return false;
  }

  double read_bytes() const {
    double bytes = 0;
    // Of a table only the rows that are asked for are read, as many bytes as are made.
    const bool looks_up = target_.library == "aten" && target_.name == "embedding" &&
                          !op_.outputs.empty() && op_.outputs[0] != kNoValue;
    for (const NamedArgument& argument : op_.arguments) {
      const Op one{.target = {}, .arguments = {argument}, .outputs = {}};
      for (const ValueId id : references(one)) {
        const bool table = looks_up && argument.name == "weight";
        const Value& read = program_.value(table ? op_.outputs[0] : id);
        if (read.kind == ValueKind::tensor) bytes += static_cast<double>(bytes_of(read, symbols_));
      }
    }
    return bytes;
  }

  // The sizes of an argument; none where it is no tensor.
  Sizes sizes(std::string_view name) const {
    const Argument* argument = find_argument(op_, name);
    const auto* reference = argument ? std::get_if<Reference>(argument) : nullptr;
    return reference ? sizes_of(program_.value(reference->value), symbols_) : Sizes{};
  }

  double last_side(std::string_view name) const {
    const Sizes all = sizes(name);
    return all.empty() ? 0 : static_cast<double>(all.back());
  }

  double output_count() const {
    if (op_.outputs.empty() || op_.outputs[0] == kNoValue) return 0;
    return count_of(sizes_of(program_.value(op_.outputs[0]), symbols_));
  }

  double products() const {
    const std::string_view name = target_.name;
    if (target_.library == "renkei") {
      if (name.starts_with("conv")) return convolution(false);
      if (name.starts_with("linear")) return 2 * output_count() * last_side("input");
      if (name.find("attention") != name.npos) return attention();
      return 0;
    }
    if (target_.library != "aten") return 0;
    if (name.find("conv_transpose") != name.npos) return convolution(true);
    if (name.starts_with("conv") || name == "_convolution") return convolution(is_transposed());
    if (name == "linear") return 2 * output_count() * last_side("weight");
    if (name.find("scaled_dot_product") != name.npos) return attention();
    if (name == "einsum") return einsum();
    if (name == "lstm" || name == "gru" || name.starts_with("rnn_")) return recurrent();
    static const std::map<std::string_view, std::string_view> left{
        {"addmm", "mat1"}, {"addmm_", "mat1"}, {"baddbmm", "batch1"}, {"addbmm", "batch1"},
        {"mm", "self"},    {"bmm", "self"},    {"matmul", "self"},    {"mv", "self"},
        {"dot", "self"},   {"addmv", "mat"}};
    const auto found = left.find(name);
    return found == left.end() ? 0 : 2 * output_count() * last_side(found->second);
  }

  bool is_transposed() const {
    const Argument* transposed = find_argument(op_, "transposed");
    const auto* value = transposed ? std::get_if<bool>(transposed) : nullptr;
    return value && *value;
  }

  // Each value of the output is a sum over the weights of its channel; of a transposed one, each
  // value of the input goes to as many sums.
  double convolution(bool transposed) const {
    const Sizes weight = sizes("weight");
    if (weight.empty() || weight[0] == 0) return 0;
    const double values = transposed ? count_of(sizes("input")) : output_count();
    return 2 * values * count_of(weight) / static_cast<double>(weight[0]);
  }

  // Scores and their sums: the rows of the query by those of the key, twice.
  double attention() const {
    const Sizes query = sizes("query"), key = sizes("key");
    if (query.size() < 2 || key.size() < 2) return 0;
    const double rows = count_of(query) / std::max(1.0, static_cast<double>(query.back()));
    return 2 * rows * static_cast<double>(key[key.size() - 2]) *
           (last_side("query") + last_side("value"));
  }

  // All weights for each place of each sequence.
  double recurrent() const {
    const Sizes input = sizes("input");
    const Argument* weights = find_argument(op_, "params");
    if (input.size() < 2 || !weights) return 0;
    double flops = 0;
    const double places = count_of(input) / std::max(1.0, static_cast<double>(input.back()));
    const Op only{.target = {}, .arguments = {{"params", *weights}}, .outputs = {}};
    for (const ValueId id : references(only))
      if (const Sizes weight = sizes_of(program_.value(id), symbols_); weight.size() == 2)
        flops += 2 * places * count_of(weight);
    return flops;
  }

  // Of two operands: each combination of all letters is a product. Others are rare, and not
  // counted.
  double einsum() const {
    const Argument* equation = find_argument(op_, "equation");
    const auto* text = equation ? std::get_if<std::string>(equation) : nullptr;
    const std::vector<ValueId> operands = references(op_);
    if (!text || operands.size() != 2 || text->find("...") != text->npos) return 0;
    std::map<char, double> letters;
    size_t operand = 0, side = 0;
    for (const char letter : *text) {
      if (letter == '-') break;
      if (letter == ' ') continue;
      if (letter == ',') {
        ++operand, side = 0;
        continue;
      }
      if (operand >= operands.size()) return 0;
      const Sizes of = sizes_of(program_.value(operands[operand]), symbols_);
      if (side >= of.size()) return 0;
      letters[letter] = std::max(letters[letter], static_cast<double>(of[side++]));
    }
    double flops = 2;
    for (const auto& [letter, size] : letters) flops *= size;
    return flops;
  }

  const Program& program_;
  const Op& op_;
  const SymbolValues& symbols_;
  Target target_;
};

}  // namespace

Work work_of(const Program& program, const Op& op, const SymbolValues& symbols) {
  return Counter(program, op, symbols).work();
}

}  // namespace renkei::program
