#include "capture/open_network.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "capture/pt2.h"
#include "networks/input_shapes.h"
#include "networks/settings.h"
#include "program/memory.h"
#include "program/modes.h"

namespace renkei::capture {
namespace {

using networks::InputShape;
using networks::Objective;
using program::Port;
using program::Program;

int64_t product(const std::vector<int64_t>& sides) {
  int64_t all = 1;
  for (const int64_t side : sides) all *= side;
  return all;
}

// Of a dictionary of results, the one that is the loss, or are the scores, by its name.
void put_main_output_first(Program& program, bool own_loss) {
  // Not that of std::ranges, whose result clang 14 can't compile.
  std::stable_partition(
      program.outputs.begin(), program.outputs.end(), [own_loss](const Port& output) {
        return own_loss ? output.name == "loss" : output.name == "out" || output.name == "logits";
      });
}

// An output called "loss", of one number.
bool returns_its_loss(const Program& program) {
  return std::ranges::any_of(program.outputs, [&](const Port& output) {
    return output.name == "loss" && program.value(output.value).sizes.empty();
  });
}

// Whole numbers that an embedding looks up are below its number of rows.
int64_t rows_of_embedding(const Program& program, program::ValueId ids) {
  int64_t least = 0;
  for (const program::Op& op : program.ops) {
    if (op.target != "aten.embedding.default") continue;
    const auto* indices = program::find_argument(op, "indices");
    const auto* weight = program::find_argument(op, "weight");
    if (!indices || !weight || *indices != program::Argument(program::Reference{ids})) continue;
    const auto& sizes = program.value(std::get<program::Reference>(*weight).value).sizes;
    if (sizes.empty() || !sizes[0].is_number()) continue;
    least = least == 0 ? sizes[0].number() : std::min(least, sizes[0].number());
  }
  return least;
}

class FileNetwork {
 public:
  FileNetwork(const Settings& settings, std::string file)
      : settings_(settings), file_(std::move(file)), read_(read_pt2(file_)) {
    const auto chosen = networks::chosen_objective(settings);
    own_loss_ = chosen ? *chosen == Objective::own_loss : returns_its_loss(read_.program);
    put_main_output_first(read_.program, own_loss_);
    if (read_.evaluation) put_main_output_first(*read_.evaluation, own_loss_);
  }

  OpenNetwork open() {
    check();
    const std::vector<InputShape> shapes = shapes_of_inputs();
    OpenNetwork made;
    for (size_t i = 0; i < read_.tensors.size(); ++i)
      made.values.emplace(read_.program.state[i].name, read_.tensors[i]);
    if (read_.evaluation)
      for (size_t i = 0; i < read_.evaluation_tensors.size(); ++i)
        made.values.emplace(read_.evaluation->state[i].name, read_.evaluation_tensors[i]);
    made.network.auxiliary_weight = settings_.real("model.auxiliary_weight");
    made.network.computes_loss = own_loss_;
    describe_outputs(made.network, shapes);
    made.network.training = std::move(read_.program);
    made.network.training.name = std::filesystem::path(file_).stem().string();
    made.evaluation = std::move(read_.evaluation);
    return made;
  }

 private:
  [[noreturn]] void refuse(const std::string& what, const std::string& hint) const {
    throw Error(ErrorCode::data, fmt::format("{}: {}", file_, what), hint);
  }

  void check() const {
    bool trained = false;
    for (const program::State& state : read_.program.state) {
      if (state.kind != program::StateKind::parameter || !state.trainable) continue;
      trained = true;
      const program::DType dtype = read_.program.value(state.value).dtype;
      if (dtype != program::DType::f32 && dtype != program::DType::f64)
        refuse(fmt::format("the parameter {} is {}, and only f32 and f64 can be trained",
                           state.name, program::name_of(dtype)),
               "convert the model in Python: model.float()");
    }
    if (!trained)
      refuse("it has no parameters that can be trained",
             "requires_grad = False fixes parameters: export the model before that");
    if (read_.program.outputs.empty())
      refuse("it returns no tensor, so there is no loss",
             "return a tensor, a tuple, a list or a dictionary of tensors");
  }

  // What a model computes its loss from is its last input, of several.
  bool takes_target() const { return own_loss_ && read_.program.inputs.size() > 1; }

  std::vector<InputShape> shapes_of_inputs() const {
    if (read_.program.inputs.empty())
      refuse("it has no inputs", "export the model with an example of its inputs");
    std::vector<InputShape> shapes = networks::input_shapes(read_.program);
    const std::string& given = settings_.text("model.input_shape");
    std::vector<InputShape> wanted;
    if (given != "auto") wanted = networks::parse_input_shapes(given);
    const size_t count = shapes.size() - (takes_target() ? 1 : 0);
    if (!wanted.empty() && wanted.size() != count)
      refuse(fmt::format("it takes {} inputs, but model.input_shape has {}", count, wanted.size()),
             "leave model.input_shape out: the file has the shapes");
    for (size_t i = 0; i < count; ++i) {
      const program::ValueId value = read_.program.inputs[i].value;
      if (!wanted.empty()) {
        if (wanted[i].shape != shapes[i].shape)
          refuse(fmt::format("its input {} is {}, but model.input_shape says {}",
                             read_.program.inputs[i].name, fmt::join(shapes[i].shape, " × "),
                             fmt::join(wanted[i].shape, " × ")),
                 "leave model.input_shape out, or export the model again");
        shapes[i].below = wanted[i].below;
      } else if (!program::is_floating(read_.program.value(value).dtype)) {
        shapes[i].below = std::max<int64_t>(2, rows_of_embedding(read_.program, value));
      }
    }
    return shapes;
  }

  void describe_outputs(networks::Network& network, const std::vector<InputShape>& shapes) const {
    networks::RandomSample& sample = network.random_sample;
    for (const InputShape& input : shapes) sample.below.push_back(input.below);
    const program::Value& main = read_.program.value(read_.program.outputs[0].value);
    if (own_loss_) {
      if (takes_target()) describe_target(sample, shapes.back());
      sample.classes = settings_.integer_unless_auto("model.classes").value_or(0);
      network.outputs = sample.classes;
      return;
    }
    std::vector<int64_t> shape;  // of one sample
    for (size_t d = 1; d < main.sizes.size(); ++d)
      shape.push_back(main.sizes[d].is_number() ? main.sizes[d].number() : 0);
    const std::string_view batch = program::batch_symbol(read_.program);
    if (shape.empty() || batch.empty() || main.sizes[0].str() != batch)
      refuse("the batch is not the first dimension of its output",
             "export with a dynamic batch and return one row per sample, or let the model compute "
             "its loss: train.loss=model");
    network.outputs = shape[0];
    if (networks::chosen_objective(settings_) == Objective::regression) {
      sample.target = networks::RandomTarget::numbers;
      sample.target_size = product(shape);
    } else {
      sample.classes = network.outputs;
      if (shape.size() > 1) {
        sample.target = networks::RandomTarget::label_per_position;
        sample.target_size = product(shape) / network.outputs;
      }
    }
  }

  void describe_target(networks::RandomSample& sample, const InputShape& target) const {
    const bool numbers =
        program::is_floating(read_.program.value(read_.program.inputs.back().value).dtype);
    if (!numbers && target.shape.empty()) return;  // one label per sample
    sample.target =
        numbers ? networks::RandomTarget::numbers : networks::RandomTarget::label_per_position;
    sample.target_size = product(target.shape);
  }

  const Settings& settings_;
  std::string file_;
  Pt2File read_;
  bool own_loss_ = false;
};

}  // namespace

OpenNetwork open_network(const Settings& settings) {
  const std::string& name = settings.text("model.name");
  if (networks::is_model_file(name)) return FileNetwork(settings, name).open();
  return {.network = networks::make_network(settings), .evaluation = {}, .values = {}};
}

Program prediction_of(const OpenNetwork& open, Predicted predicted) {
  Program program = open.evaluation ? *open.evaluation : program::evaluation(open.network.training);
  if (predicted == Predicted::main && program.outputs.size() > 1) {
    // A loss that the network computes is nothing to predict: the next one counts.
    const auto main = program.outputs.begin() + (open.network.computes_loss ? 1 : 0);
    program.outputs = {*main};
  }
  const std::string_view batch = program::batch_symbol(program);
  std::erase_if(program.outputs, [&](const Port& output) {
    const std::vector<program::Size>& sizes = program.value(output.value).sizes;
    return batch.empty() || sizes.empty() || sizes[0].str() != batch;
  });
  if (program.outputs.empty())
    throw Error(ErrorCode::data,
                fmt::format("{} has no output with a row for each sample", program.name),
                "export a model that returns one row per sample, with a dynamic batch");
  program::remove_dead_ops(program);
  return program;
}

Programs programs_of(const OpenNetwork& open, const networks::LossOptions& given) {
  networks::LossOptions loss = given;
  loss.auxiliary_weight = open.network.auxiliary_weight;
  Programs programs{.training = networks::training_program(open.network.training, loss),
                    .evaluation = {},
                    .no_evaluation = {}};
  try {
    programs.evaluation = networks::evaluation_program(
        open.evaluation ? *open.evaluation : program::evaluation(open.network.training), loss);
  } catch (const Error& error) {
    programs.no_evaluation = error;
  }
  return programs;
}

}  // namespace renkei::capture
