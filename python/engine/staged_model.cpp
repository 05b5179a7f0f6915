#include "staged_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "graph/lowering.h"
#include "job/choose_plan.h"
#include "program/memory.h"
#include "run/memory.h"
#include "run/train_options.h"

namespace renkei::python {
namespace {

program::Program outputs_only(const CapturedModel& captured) {
  program::Program program = read_program(captured);
  if (program.outputs.empty())
    throw Error(ErrorCode::data, "the model returns no tensor", "return what it computes");
  program::remove_dead_ops(program);
  program::check(program, program.name);
  return program;
}

// Whether what becomes of a sample depends on others, or results belong to the whole batch: then a
// rank's batch stays in one piece, unless it is asked for.
bool mixes_samples(const program::Program& program) {
  const auto of_batch = [&](const program::Port& output) {
    return graph::batch_dimension(program, program.value(output.value)) < 0;
  };
  const auto mixes = [](const program::Op& op) {
    // What an opaque part does, nobody knows.
    return op.target.find("batch_norm") != std::string::npos || op.target.starts_with("renkei.");
  };
  return std::ranges::any_of(program.outputs, of_batch) || std::ranges::any_of(program.ops, mixes);
}

// What a rank has beside its stages: the outputs of its own batch, and their gradients.
int64_t bytes_of_outputs(const program::Program& program, int64_t samples) {
  int64_t bytes = 0;
  for (const program::Port& output : program.outputs)
    bytes += program::bytes_of(program.value(output.value), program::with_batch(program, samples));
  return 2 * bytes;
}

// As many ranks for each stage, if its number allows it: every rank's batch can then stay in one
// piece. The search divides ranks by work alone.
void deal_evenly(plan::Plan& plan, int ranks) {
  if (plan.stage_list.empty() || plan.tensor != 1 || ranks % plan.stages != 0) return;
  const auto each = static_cast<size_t>(ranks / plan.stages);
  int next = 0;
  for (plan::Stage& stage : plan.stage_list) {
    stage.ranks.resize(each);
    std::iota(stage.ranks.begin(), stage.ranks.end(), next);
    next += static_cast<int>(each);
  }
  plan.replicas = static_cast<int>(each);
  plan.kind = plan::kind_of(plan.stages, plan.replicas, plan.tensor);
}

// Every micro-batch of a lane is part of one rank's batch: so many for each rank, at least as many
// as were planned.
plan::BatchSizes divided(const plan::Plan& plan, const StagedModel::Options& options, int ranks,
                         bool in_one_piece) {
  int lanes = 1;
  for (const plan::Stage& stage : plan.stage_list)
    lanes = std::lcm(lanes, static_cast<int>(stage.ranks.size()));
  if (plan.stage_list.empty()) lanes = ranks;
  plan::BatchSizes batch = plan.batch;
  batch.global = options.samples * ranks;
  if (ranks % lanes != 0) {
    // Samples are divided anew, which is right where each is for itself.
    if (in_one_piece)
      throw Error(
          ErrorCode::usage,
          fmt::format("the plan divides batches into {} parts, they come from {} ranks, and "
                      "the model does not treat each sample for itself",
                      lanes, ranks),
          "plan with as many ranks for each stage (plan.stages a divisor of the ranks)");
    if (options.micro_batches) batch.accumulation = *options.micro_batches;
    return batch;
  }
  const int64_t homes = ranks / lanes;  // of a lane
  const int64_t planned = in_one_piece ? 1 : (plan.batch.accumulation + homes - 1) / homes;
  const int64_t of_home =
      std::min(options.micro_batches.value_or(planned), std::max<int64_t>(1, options.samples));
  batch.accumulation = of_home * homes;
  batch.micro = (options.samples + of_home - 1) / of_home;
  return batch;
}

}  // namespace

// Batches come with calls.
class StagedModel::NoData : public data::Dataset {
 public:
  explicit NoData(int64_t count) : count_(count) {}
  int64_t count() const override { return count_; }
  const std::vector<data::Field>& fields() const override { return fields_; }

 private:
  void read_fields(int64_t, int64_t, std::span<const data::FieldSpan>) const override {
    throw Error(ErrorCode::bug, "a model that is called reads no data");
  }
  int64_t count_;
  std::vector<data::Field> fields_;
};

StagedModel::StagedModel(World& world, const CapturedModel& captured, const Options& options)
    : given_(options.settings) {
  Settings settings = engine_settings(given_);
  const int ranks = world.size();
  const std::string& wanted = settings.text("train.plan");
  if (wanted == "auto" || wanted == "data")
    settings.set("train.batch", std::to_string(options.samples * ranks), "the batch");
  run::install_memory_pools();
  const program::Program program = outputs_only(captured);
  draws_ = draws_numbers(program);
  model_.training = bound(program, captured.state, settings);
  Settings planning = settings;
  if (const auto limit = settings.size_unless_auto("train.device_memory"))
    planning.set(
        "train.device_memory",
        std::to_string(std::max<int64_t>(1, *limit - bytes_of_outputs(program, options.samples))),
        "the device's memory without a rank's outputs");
  const auto choose = [&] {
    plan_ = job::choose_plan(
                planning, {.model = model_,
                           .program = model_.training.program,
                           .communicator = world.communicator(),
                           .compute = run::compute_options(settings),
                           .threads = world.threads(),
                           .quiet = true,
                           .own_values = true,
                           .schedules = {plan::ScheduleKind::accumulate, plan::ScheduleKind::gpipe},
                           .samples = options.batch})
                .plan;
  };
  choose();
  const bool in_one_piece = mixes_samples(program);
  if (in_one_piece && wanted == "auto") {
    if (ranks % plan_.stages != 0 && !settings.integer_unless_auto("plan.stages")) {
      int stages = plan_.stages;
      while (ranks % stages != 0) ++stages;
      planning.set("plan.stages", std::to_string(stages), "samples that belong together");
      choose();
    }
    deal_evenly(plan_, ranks);
  }
  plan_.batch = divided(plan_, options, ranks, in_one_piece);
  run::TrainOptions training = run::train_options(settings);
  training.timeout_seconds = world.timeout_seconds();
  training.update.optimizer = {};
  training.update.only_reduce = comm::Reduction::sum;
  training.update.timeout_seconds = world.timeout_seconds();
  data_ = std::make_unique<NoData>(plan_.batch.global);
  network_ =
      std::make_unique<run::CalledNetwork>(run::TrainJob{.model = model_,
                                                         .train_data = *data_,
                                                         .held_out = nullptr,
                                                         .communicator = world.communicator(),
                                                         .plan = plan_,
                                                         .called = true},
                                           training, options.buffers);
}

StagedModel::~StagedModel() = default;

int StagedModel::add(const CapturedModel& captured) {
  others_.push_back(std::make_unique<run::BoundProgram>(
      bound(outputs_only(captured), captured.state, engine_settings(given_))));
  return network_->add(*others_.back());
}

std::string StagedModel::plan() const {
  return to_json(plan_).dump();
}

std::vector<std::string> StagedModel::names() const {
  std::vector<std::string> list;
  for (const program::State& state : model_.training.program.state)
    if (state.kind != program::StateKind::constant) list.push_back(state.name);
  return list;
}

const std::vector<int>& StagedModel::holders(const std::string& name) const {
  const auto& state = model_.training.program.state;
  const auto found = std::ranges::find(state, name, &program::State::name);
  if (found == state.end())
    throw Error(ErrorCode::bug, fmt::format("the model has no tensor {}", name));
  return network_->holders(static_cast<size_t>(found - state.begin()));
}

}  // namespace renkei::python
