#include "staged_training.h"

#include <fmt/format.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "job/choose_plan.h"
#include "networks/loss.h"
#include "rewrite/rewrite.h"
#include "run/cut_program.h"
#include "run/memory.h"

namespace renkei::python {
namespace {

data::DType field_type(torch::ScalarType type) {
  switch (type) {
    case torch::kUInt8:
      return data::DType::u8;
    case torch::kInt8:
      return data::DType::i8;
    case torch::kInt16:
      return data::DType::i16;
    case torch::kInt32:
      return data::DType::i32;
    case torch::kInt64:
      return data::DType::i64;
    case torch::kFloat16:
      return data::DType::f16;
    case torch::kFloat32:
      return data::DType::f32;
    case torch::kFloat64:
      return data::DType::f64;
    case torch::kBool:
      return data::DType::boolean;
    default:
      throw Error(ErrorCode::usage,
                  fmt::format("an input is {}, which samples can't be", torch::toString(type)),
                  "convert it to a type of whole or real numbers");
  }
}

}  // namespace

std::vector<std::string> ops_of(const CapturedModel& captured,
                                const std::map<std::string, std::string>& given) {
  const run::CutProgram cut(
      rewrite::rewrite(networks::training_program(read_program(captured),
                                                  {.objective = networks::Objective::own_loss}),
                       rewrite::rewrite_options(engine_settings(given)))
          .program);
  std::vector<std::string> ids;
  for (const graph::Op& op : cut.graph().ops) ids.push_back(op.id);
  return ids;
}

// The batch of the step under way, as a data set of its own.
class StagedTraining::Samples : public data::Dataset {
 public:
  explicit Samples(const NamedTensors& batch) {
    for (const auto& [name, tensor] : batch) {
      if (tensor.dim() == 0)
        throw Error(ErrorCode::usage, fmt::format("the input {} has no samples", name),
                    "give tensors whose first dimension is the batch");
      fields_.push_back({.name = name,
                         .dtype = field_type(tensor.scalar_type()),
                         .shape = tensor.sizes().slice(1).vec()});
      count_ = tensor.size(0);
    }
    set(batch);
  }

  void set(const NamedTensors& batch) {
    tensors_.clear();
    for (const data::Field& field : fields_) {
      const auto found = batch.find(field.name);
      if (found == batch.end())
        throw Error(ErrorCode::usage, fmt::format("the input {} is missing", field.name));
      const torch::Tensor& tensor = found->second;
      if (tensor.size(0) != count_ || tensor.sizes().slice(1) != at::IntArrayRef(field.shape) ||
          field_type(tensor.scalar_type()) != field.dtype)
        throw Error(ErrorCode::usage,
                    fmt::format("the input {} has other sizes or another type than in the first "
                                "step, where there were {} samples of all ranks together",
                                field.name, count_),
                    "drop the last, smaller batch of an epoch (drop_last=True)");
      tensors_.push_back(tensor.contiguous());
    }
  }

  int64_t count() const override { return count_; }
  const std::vector<data::Field>& fields() const override { return fields_; }

 private:
  void read_fields(int64_t sample, int64_t, std::span<const data::FieldSpan> into) const override {
    for (const data::FieldSpan& field : into) {
      const auto* bytes = static_cast<const std::byte*>(tensors_[field.field].data_ptr());
      std::memcpy(field.bytes.data(), bytes + static_cast<size_t>(sample) * field.bytes.size(),
                  field.bytes.size());
    }
  }

  std::vector<data::Field> fields_;
  std::vector<torch::Tensor> tensors_;
  int64_t count_ = 0;
};

StagedTraining::StagedTraining(World& world, const CapturedModel& captured,
                               const NamedTensors& batch,
                               const std::map<std::string, std::string>& given,
                               timeline::RankFile* timeline)
    : world_(world), samples_(std::make_unique<Samples>(batch)), timeline_(timeline) {
  Settings settings = engine_settings(given);
  settings.set("train.batch", std::to_string(samples_->count()), "the batch");
  run::install_memory_pools();
  program::Program program = read_program(captured);
  program =
      networks::training_program(std::move(program), {.objective = networks::Objective::own_loss});
  model_.training = bound(program, captured.state, settings);
  plan_ = job::choose_plan(settings, {.model = model_,
                                      .program = model_.training.program,
                                      .communicator = world.communicator(),
                                      .compute = run::compute_options(settings),
                                      .threads = world.threads(),
                                      .quiet = true,
                                      .own_values = true,
                                      .samples = batch})
              .plan;
  options_ = run::train_options(settings);
  options_.steps = int64_t{1} << 40;
  options_.shuffle = false;
  options_.update.optimizer = {};
  options_.update.only_reduce = comm::Reduction::sum;
}

StagedTraining::~StagedTraining() = default;

double StagedTraining::step(const NamedTensors& batch) {
  samples_->set(batch);
  if (!session_)
    session_ = std::make_unique<job::Session>(run::TrainJob{.model = model_,
                                                            .train_data = *samples_,
                                                            .held_out = nullptr,
                                                            .communicator = world_.communicator(),
                                                            .plan = plan_,
                                                            .timeline = timeline_},
                                              options_);
  return session_->step().loss;
}

std::string StagedTraining::plan() const {
  return to_json(plan_).dump();
}

std::vector<std::string> StagedTraining::names() const {
  std::vector<std::string> list;
  for (const program::State& state : model_.training.program.state)
    if (state.kind != program::StateKind::constant) list.push_back(state.name);
  return list;
}

torch::Tensor StagedTraining::fetch(const std::string& name) {
  if (!session_) throw Error(ErrorCode::usage, "there was no step yet", "call step(…) first");
  const auto& state = model_.training.program.state;
  const auto found = std::ranges::find(state, name, &program::State::name);
  return session_->fetch(static_cast<size_t>(found - state.begin()));
}

std::vector<std::string> StagedTraining::held() const {
  std::vector<std::string> list;
  const auto& state = model_.training.program.state;
  for (size_t i = 0; i < state.size(); ++i)
    if (model_.has_memory(i)) list.push_back(state[i].name);
  return list;
}

void StagedTraining::close() {
  if (session_) session_->close();
}

}  // namespace renkei::python
