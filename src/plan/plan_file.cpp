#include "plan/plan_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/json_fields.h"
#include "plan/stage_values.h"

namespace renkei::plan {
namespace {

constexpr int64_t kVersion = 1;
constexpr int64_t kMost = int64_t{1} << 40;
constexpr int64_t kMostRanks = 1 << 24;

[[noreturn]] void refuse(const std::string& source, const std::string& what,
                         const std::string& hint = "") {
  throw Error(ErrorCode::data, source + ": " + what, hint);
}

Stage stage_from(const JsonFields& fields) {
  fields.allow_only({"ranks", "recompute", "segments", "loads", "ops"});
  Stage stage{.ops = fields.ids("ops"),
              .recompute = fields.boolean_or("recompute", false),
              .loads = fields.boolean_or("loads", false)};
  for (const int64_t rank : fields.integers("ranks", 0, kMostRanks))
    stage.ranks.push_back(static_cast<int>(rank));
  if (stage.ops.empty()) fields.refuse("ops", "a list with at least one op");
  if (stage.ranks.empty()) fields.refuse("ranks", "a list with at least one rank");
  if (fields.has("segments"))
    for (const int64_t ops : fields.integers("segments", 1, static_cast<int64_t>(stage.ops.size())))
      stage.segments.push_back(static_cast<int>(ops));
  const auto sum = std::accumulate(stage.segments.begin(), stage.segments.end(), int64_t{0});
  if (!stage.segments.empty() && sum != static_cast<int64_t>(stage.ops.size()))
    fields.refuse("segments", fmt::format("numbers of ops that add up to {}", stage.ops.size()));
  if (!stage.segments.empty() && !stage.recompute)
    fields.refuse("segments", "empty where \"recompute\" is false");
  return stage;
}

PlanKind kind_from(const JsonFields& fields) {
  const std::string name = fields.text("kind");
  for (const PlanKind kind :
       {PlanKind::data, PlanKind::pipeline, PlanKind::tensor, PlanKind::hybrid})
    if (name == name_of(kind)) return kind;
  fields.refuse("kind", "data, pipeline, tensor or hybrid");
}

void check_ops(const Plan& plan, const std::string& source) {
  std::set<std::string> seen;
  for (const Stage& stage : plan.stage_list)
    for (const std::string& op : stage.ops)
      if (!seen.insert(op).second) refuse(source, fmt::format("op '{}' is in two places", op));
}

// Stages of one group have the same ranks; different groups share none.
void check_groups(const Plan& plan, const std::string& source) {
  const Shape shape = plan.shape();
  std::map<int, int> group_of_rank;
  for (int s = 0; s < plan.stages; ++s) {
    const std::vector<int>& ranks = plan.stage_list[static_cast<size_t>(s)].ranks;
    const int group = shape.group_of(s);
    if (ranks != plan.stage_list[static_cast<size_t>(group)].ranks)
      refuse(source, fmt::format("stages {} and {} must have the same ranks", group, s),
             fmt::format("with {} chunks each rank has every {}th stage", plan.chunks,
                         shape.groups()));
    if (std::set<int>(ranks.begin(), ranks.end()).size() != ranks.size())
      refuse(source, fmt::format("stage {} has a rank twice", s));
    for (const int rank : ranks)
      if (!group_of_rank.try_emplace(rank, group).second && group_of_rank[rank] != group)
        refuse(source, fmt::format("rank {} is in stages {} and {}", rank, group_of_rank[rank], s));
  }
  const auto count = static_cast<int>(group_of_rank.size());
  if (group_of_rank.rbegin()->first != count - 1)
    refuse(source, fmt::format("the {} ranks must be those from 0 to {}", count, count - 1));
}

void check_numbers(const Plan& plan, const std::string& source) {
  const Shape shape = plan.shape();
  if (!plan.stage_list.empty() && static_cast<int>(plan.stage_list.size()) != plan.stages)
    refuse(source, fmt::format("stage_list has {} stages, 'stages' says {}", plan.stage_list.size(),
                               plan.stages));
  if (plan.batch.global % plan.batch.accumulation != 0)
    refuse(source, fmt::format("a batch of {} can't be divided into {} micro-batches",
                               plan.batch.global, plan.batch.accumulation));
  if (plan.stages % plan.chunks != 0)
    refuse(source, fmt::format("{} stages are no multiple of {} chunks", plan.stages, plan.chunks));
  if ((shape.kind == ScheduleKind::accumulate && plan.stages > 1) ||
      (shape.kind == ScheduleKind::interleaved
           ? shape.groups() < 2 || shape.micro_batches % shape.groups() != 0
           : plan.chunks > 1))
    refuse(source, fmt::format("the schedule {} does not allow {} stages in {} chunks and {} "
                               "micro-batches",
                               plan.schedule, plan.stages, plan.chunks, shape.micro_batches));
}

// What follows from the stages is written into the file for its readers. Who changes one and not
// the other has meant something that would not be done.
void check_what_follows(const Plan& plan, const JsonFields& fields) {
  const int64_t ranks = plan.ranks();
  int64_t most = ranks / plan.tensor;
  if (!plan.stage_list.empty()) {
    most = 0;
    for (const Stage& stage : plan.stage_list) {
      most = std::max(most, std::ssize(stage.ranks) / plan.tensor);
      if (std::ssize(stage.ranks) % plan.tensor != 0)
        fields.refuse("tensor", fmt::format("a divisor of the ranks of each stage, and one has {}",
                                            stage.ranks.size()));
    }
  }
  const int64_t samples = plan.batch.global / plan.batch.accumulation;
  if (samples < most)
    fields.refuse(
        "micro_batches",
        fmt::format("fewer: {} samples can't be divided among {} replicas", samples, most));
  const auto must_be = [&](std::string_view name, int64_t given, int64_t follows) {
    if (given != follows)
      fields.refuse(name, fmt::format("{} by the rest of the plan, not {}", follows, given));
  };
  must_be("replicas", plan.replicas, most);
  must_be("ranks", fields.integer_or("ranks", 1, kMostRanks, ranks), ranks);
  must_be("micro_batch", plan.batch.micro, (samples + most - 1) / most);
  const PlanKind kind = kind_of(plan.stages, most, plan.tensor);
  if (plan.kind != kind)
    fields.refuse("kind", fmt::format("{} by the rest of the plan, not {}", name_of(kind),
                                      name_of(plan.kind)));
}

}  // namespace

Plan make_plan(const Objective& objective, const Evaluated& evaluated) {
  const Layout& layout = evaluated.layout;
  const int replicas = *std::ranges::max_element(layout.replicas);
  const int64_t batch = objective.problem().batch;
  const int tensor = objective.problem().tensor;
  Plan plan{
      .kind = kind_of(layout.stages(), replicas, tensor),
      .stages = layout.stages(),
      .replicas = replicas,
      .tensor = tensor,
      .tensor_ops = objective.problem().tensor_ops,
      .batch = {.global = batch,
                .micro = static_cast<int64_t>(objective.samples(layout.micro_batches, replicas)),
                .accumulation = layout.micro_batches,
                .ranks = replicas},
      .schedule = std::string(name_of(layout.schedule)),
      .chunks = layout.chunks,
      .sharded_optimizer = layout.sharded_optimizer};
  const graph::Graph& graph = objective.problem().graph;
  for (int s = 0; s < layout.stages(); ++s) {
    const size_t from = layout.cuts[static_cast<size_t>(s)],
                 to = layout.cuts[static_cast<size_t>(s) + 1];
    const int group = layout.shape().group_of(s);
    Stage stage{.recompute = evaluated.recompute[static_cast<size_t>(group)],
                .loads = objective.cuts().loads_inputs(from, to)};
    // Segment by segment, which is a topological order too.
    std::vector<size_t> borders = evaluated.segment_cuts[static_cast<size_t>(s)];
    borders.push_back(to);
    size_t begin = from;
    for (const size_t end : borders) {
      for (const graph::OpIndex op : objective.cuts().ops_between(begin, end))
        stage.ops.push_back(graph.ops[static_cast<size_t>(op)].id);
      if (borders.size() > 1)
        stage.segments.push_back(static_cast<int>(objective.cuts().ops_before(end) -
                                                  objective.cuts().ops_before(begin)));
      begin = end;
    }
    const DeviceRange devices = devices_of(layout, group);
    for (int i = 0; i < devices.count; ++i)
      for (int t = 0; t < tensor; ++t) stage.ranks.push_back(devices[i] * tensor + t);
    plan.stage_list.push_back(std::move(stage));
  }
  return plan;
}

Plan plan_from_json(const nlohmann::json& json, const std::string& source) {
  const JsonFields fields(json, source);
  if (const int64_t version = fields.integer("version", 0, INT64_MAX); version != kVersion)
    refuse(source, fmt::format("plans of version {} are not known", version),
           fmt::format("this renkei reads version {}", kVersion));
  fields.allow_only({"version", "kind", "stages", "replicas", "tensor", "ranks", "batch",
                     "micro_batch", "micro_batches", "schedule", "chunks", "sharded_optimizer",
                     "stage_list", "tensor_ops"});
  Plan plan{.kind = kind_from(fields),
            .stages = static_cast<int>(fields.integer("stages", 1, kMostRanks)),
            .replicas = static_cast<int>(fields.integer("replicas", 1, kMostRanks)),
            .tensor = static_cast<int>(fields.integer_or("tensor", 1, kMostRanks, 1)),
            .batch = {.global = fields.integer("batch", 1, kMost),
                      .micro = fields.integer("micro_batch", 1, kMost),
                      .accumulation = fields.integer("micro_batches", 1, 1 << 30)},
            .schedule = fields.text("schedule"),
            .chunks = static_cast<int>(fields.integer_or("chunks", 1, kMostRanks, 1)),
            .sharded_optimizer = fields.boolean_or("sharded_optimizer", false)};
  if (int64_t{plan.replicas} * plan.tensor > kMostRanks)
    fields.refuse("tensor", fmt::format("at most {} with {} replicas", kMostRanks / plan.replicas,
                                        plan.replicas));
  plan.batch.ranks = plan.replicas;
  if (fields.has("tensor_ops"))
    for (const auto& [op, strategy] : json.at("tensor_ops").items()) {
      if (!strategy.is_string())
        fields.refuse("tensor_ops", "names of strategies by op: \"linear\": \"column\"");
      plan.tensor_ops[op] = strategy.get<std::string>();
    }
  if (plan.tensor == 1 && !plan.tensor_ops.empty())
    fields.refuse("tensor_ops", "left out where tensor is 1");
  const auto names = schedule_names();
  if (std::ranges::count(names, plan.schedule) == 0)
    fields.refuse("schedule", fmt::format("one of {}", fmt::join(names, ", ")));
  if (fields.has("stage_list"))
    for (const JsonFields& stage : fields.objects("stage_list"))
      plan.stage_list.push_back(stage_from(stage));
  if (plan.stage_list.empty() && plan.stages != 1)
    fields.refuse("stage_list", "there, unless each rank has the whole model");
  check_numbers(plan, source);
  check_ops(plan, source);
  if (!plan.stage_list.empty()) check_groups(plan, source);
  check_what_follows(plan, fields);
  return plan;
}

Plan load_plan(const std::filesystem::path& file) {
  return plan_from_json(parse_json(read_file(file), file.string()), file.string());
}

void save_plan(const Plan& plan, const std::filesystem::path& file) {
  write_file_atomically(file, to_json(plan).dump(2) + "\n");
}

void check_against(const Plan& plan, const graph::Graph& graph, const std::string& source) {
  if (plan.stage_list.empty()) return;
  std::map<std::string, int> stage_of;
  for (size_t stage = 0; stage < plan.stage_list.size(); ++stage)
    for (const std::string& op : plan.stage_list[stage].ops) stage_of[op] = static_cast<int>(stage);
  std::set<std::string> known;
  for (const graph::Op& op : graph.ops) {
    known.insert(op.id);
    if (!stage_of.contains(op.id))
      refuse(source, fmt::format("op '{}' of the model is in no stage", op.id),
             "the plan was made for another model, or the op was left out");
  }
  for (const auto& [op, stage] : stage_of)
    if (!known.contains(op))
      refuse(source, fmt::format("the model has no op '{}', which is in stage {}", op, stage),
             "the plan was made for another model");
  const auto before = predecessors(graph);
  const std::vector<int> segment_of = segment_of_ops(plan, graph);
  for (size_t op = 0; op < graph.ops.size(); ++op)
    for (const graph::OpIndex earlier : before[op]) {
      const std::string& needed = graph.ops[static_cast<size_t>(earlier)].id;
      if (stage_of[needed] == stage_of[graph.ops[op].id] &&
          segment_of[static_cast<size_t>(earlier)] > segment_of[op])
        refuse(source,
               fmt::format("op '{}' of stage {} needs op '{}' of a later segment", graph.ops[op].id,
                           stage_of[needed], needed),
               "values flow from a segment to later ones only");
      if (stage_of[needed] > stage_of[graph.ops[op].id])
        refuse(source,
               fmt::format("op '{}' of stage {} needs op '{}' of stage {}: stages would wait for "
                           "each other",
                           graph.ops[op].id, stage_of[graph.ops[op].id], needed, stage_of[needed]),
               "values flow from a stage to later ones only");
    }
}

void check_ranks(const Plan& plan, int ranks, const std::string& source) {
  if (plan.ranks() == ranks) return;
  throw Error(
      ErrorCode::usage,
      fmt::format("{}: the plan needs {} ranks, and there are {}", source, plan.ranks(), ranks),
      fmt::format("start it with -n {}, or make a plan for {} devices", plan.ranks(), ranks));
}

}  // namespace renkei::plan
