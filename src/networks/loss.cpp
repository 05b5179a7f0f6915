#include "networks/loss.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "program/builder.h"
#include "program/memory.h"

namespace renkei::networks {
namespace {

using program::Builder;
using program::DType;
using program::Port;
using program::Program;
using program::Reference;
using program::Size;
using program::ValueId;
using Reduction = Builder::Reduction;

constexpr std::string_view kTarget = "target";
constexpr int64_t kIgnored = -100;  // a label that counts for nothing; Torch's default too

std::string shape_text(const std::vector<Size>& sizes) {
  std::vector<std::string> words;
  for (const Size& size : sizes) words.push_back(size.str());
  return fmt::format("{}", fmt::join(words, " × "));
}

class LossWriter {
 public:
  LossWriter(Program network, const LossOptions& options)
      : options_(options),
        outputs_(std::exchange(network.outputs, {})),
        samples_(checked_inputs(network, options, outputs_)),
        builder_(std::move(network)),
        target_(add_target()) {}

  ValueId main_loss() {
    const ValueId main = outputs_[0].value;
    if (options_.objective == Objective::own_loss) return own_loss(main);
    require_rows(main);
    return loss_of(main);
  }

  ValueId with_auxiliary(ValueId loss) {
    if (options_.objective == Objective::own_loss) return loss;
    const std::vector<Size> main = builder_.sizes(outputs_[0].value);
    for (size_t i = 1; i < outputs_.size(); ++i) {
      // Heads that score too; features or attention weights have other shapes.
      const ValueId output = outputs_[i].value;
      if (builder_.sizes(output) != main || !is_floating(builder_.value(output).dtype)) continue;
      loss = builder_.add(loss, builder_.mul(loss_of(output), options_.auxiliary_weight));
    }
    return loss;
  }

  std::optional<ValueId> correct() {
    if (!options_.target.label || options_.objective == Objective::own_loss) return {};
    return builder_.sum(builder_.eq(builder_.argmax(outputs_[0].value, 1), target_));
  }

  Builder& builder() { return builder_; }

 private:
  // Returns the number of samples, as a size.
  static Size checked_inputs(const Program& network, const LossOptions& options,
                             const std::vector<Port>& outputs) {
    if (outputs.empty() || network.inputs.empty() ||
        network.value(network.inputs[0].value).sizes.empty())
      throw Error(
          ErrorCode::data,
          fmt::format("{} has no rows as input, or no output, so there is no loss", network.name),
          "export a model that takes a batch and returns a tensor");
    if (options.objective != Objective::own_loss &&
        std::ranges::count(network.inputs, kTarget, &Port::name) > 0)
      throw Error(ErrorCode::usage,
                  fmt::format("{} takes its target itself, so its loss is its own", network.name),
                  "train it with train.loss=model");
    return network.value(network.inputs[0].value).sizes[0];
  }

  ValueId add_target() {
    if (options_.objective == Objective::own_loss) return program::kNoValue;
    std::vector<Size> sizes{samples_};
    if (!options_.target.label) sizes.emplace_back(options_.target.size);
    const DType output = builder_.value(outputs_[0].value).dtype;
    const DType numbers = output == DType::f64 ? DType::f64 : DType::f32;
    const bool labels = options_.target.label || options_.objective != Objective::regression;
    return builder_.input(std::string(kTarget), labels ? DType::i64 : numbers, std::move(sizes));
  }

  void require_rows(ValueId output) {
    const std::vector<Size>& sizes = builder_.sizes(output);
    if (sizes.size() >= 2 && sizes[0] == samples_) return;
    throw Error(ErrorCode::data,
                fmt::format("the model gives an output of shape {} for {} samples, and the batch "
                            "must be its first dimension",
                            shape_text(sizes), samples_.str()),
                "return one row per sample, or let the model compute its loss: train.loss=model");
  }

  ValueId loss_of(ValueId output) {
    if (options_.objective == Objective::regression) return squared_error(output);
    const double smoothing =
        options_.objective == Objective::smoothed_classification ? kLabelSmoothing : 0;
    if (!options_.target.label) return cross_entropy_of_positions(output, smoothing);
    if (builder_.sizes(output).size() != 2)
      refuse_target(output, "one label per sample", "give a label for each position");
    return builder_.cross_entropy_loss(output, target_, Reduction::sum, smoothing);
  }

  ValueId squared_error(ValueId output) {
    const ValueId row = builder_.flatten(output, 1);
    const Size& size = builder_.sizes(row)[1];
    if (options_.target.label || size != Size(options_.target.size))
      refuse_target(output, options_.target.label ? "labels" : target_text(),
                    "make the rows of the targets as long as those of the outputs");
    return builder_.div(builder_.mse_loss(row, target_, Reduction::sum), size.number());
  }

  ValueId cross_entropy_of_positions(ValueId output, double smoothing) {
    const int64_t positions = options_.target.size;
    const auto dims = static_cast<int64_t>(builder_.sizes(output).size());
    ValueId scores = dims > 3 ? builder_.flatten(output, 2) : output;
    if (dims < 3 || builder_.sizes(scores)[2] != Size(positions))
      refuse_target(output, target_text(), "make one label for each position of the output");
    const int64_t classes = builder_.size(scores, 1);
    // Rows of scores, one per position: of language models they lie like this in memory.
    scores = builder_.reshape(builder_.transpose(scores, 1, 2), {samples_ * positions, classes});
    const ValueId losses = builder_.cross_entropy_loss(scores, builder_.flatten(target_, 0),
                                                       Reduction::none, smoothing);
    const ValueId predicted =
        builder_.clamp_min(builder_.sum(builder_.ne(target_, kIgnored), 1), 1);
    const ValueId sums = builder_.sum(builder_.view(losses, {samples_, positions}), 1);
    return builder_.sum(builder_.div(sums, Reference{predicted}));
  }

  ValueId own_loss(ValueId loss) {
    const std::vector<Size>& sizes = builder_.sizes(loss);
    if (sizes.size() == 1 && sizes[0] == samples_) return builder_.sum(loss);
    for (const Size& size : sizes)
      if (size != Size(1))
        throw Error(
            ErrorCode::data,
            fmt::format("the model gives an output of shape {} as its loss", shape_text(sizes)),
            "return one number, the mean over the samples, or one per sample");
    const ValueId sum = builder_.sum(loss);
    return builder_.mul(sum, Reference{builder_.sym_size(builder_.program().inputs[0].value, 0)});
  }

  std::string target_text() const {
    return fmt::format("a row of {} numbers per sample", options_.target.size);
  }

  [[noreturn]] void refuse_target(ValueId output, const std::string& has, const char* hint) {
    throw Error(ErrorCode::usage,
                fmt::format("the model's output of shape {} and the data's target, {}, do not fit "
                            "together",
                            shape_text(builder_.sizes(output)), has),
                hint);
  }

  LossOptions options_;
  std::vector<Port> outputs_;
  Size samples_;
  Builder builder_;
  ValueId target_;
};

// Without what computes other outputs, such as auxiliary heads in an evaluation.
Program finished(Builder& builder) {
  Program program = builder.take();
  remove_dead_ops(program);
  check(program, program.name);
  return program;
}

}  // namespace

Program training_program(Program network, const LossOptions& options) {
  LossWriter writer(std::move(network), options);
  writer.builder().output("loss", writer.with_auxiliary(writer.main_loss()));
  return finished(writer.builder());
}

Program evaluation_program(Program network, const LossOptions& options) {
  LossWriter writer(std::move(network), options);
  writer.builder().output("loss", writer.main_loss());
  if (const auto correct = writer.correct()) writer.builder().output("correct", *correct);
  return finished(writer.builder());
}

}  // namespace renkei::networks
