#include "plan/plan_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "schedule/evaluate.h"
#include "schedule/validate.h"
#include "tests/base/temporary_directory.h"
#include "tests/base/thrown_error.h"
#include "tests/base/wrong_types.h"
#include "tests/plan/problems.h"

namespace renkei::plan {
namespace {

using test::thrown_error;

// A pipeline of three stages, the first on two ranks, for a graph with a skip.
struct Planned {
  Problem problem = test::small_problem(skip_graph(), 4, 8, false);
  schedule::ScheduledSteps steps;
  Objective objective{problem, steps};
  Plan plan = make_plan(objective, objective.evaluate(layout()));

  static renkei::graph::Graph skip_graph() {
    Random random(5, RandomUse::random_input, 0, 0);
    return test::random_graph({.ops = 8, .fork_share = 0, .skip_share = 0.5}, random);
  }
  Layout layout() const {
    return {.schedule = ScheduleKind::one_f_one_b,
            .micro_batches = 4,
            .cuts = {0, 3, 5, objective.cuts().last()},
            .replicas = {2, 1, 1}};
  }
};

void expect_refused(const nlohmann::json& json, const std::string& part) {
  const Error error = thrown_error([&] { plan_from_json(json, "p.json"); });
  EXPECT_EQ(error.code, ErrorCode::data);
  EXPECT_NE(error.message.find(part), std::string::npos) << error.message;
}

TEST(PlanFile, HasNoMoreRanksThanThereCanBe) {
  nlohmann::json json = to_json(data_parallel_plan({.global = 1 << 20, .micro = 1}));
  json["replicas"] = json["tensor"] = 1 << 20;
  expect_refused(json, "at most 16 with 1048576 replicas");
}

TEST(PlanFile, HasEveryOpOnceAndTheRanksOfItsStages) {
  const Planned planned;
  const Plan& plan = planned.plan;
  EXPECT_EQ(plan.kind, PlanKind::hybrid);
  EXPECT_EQ(plan.ranks(), 4);
  EXPECT_EQ(plan.stage_list[0].ranks, (std::vector<int>{0, 1}));
  EXPECT_EQ(plan.stage_list[2].ranks, (std::vector<int>{3}));
  EXPECT_TRUE(plan.stage_list[0].loads);
  EXPECT_EQ(plan.batch.micro, 1);
  check_against(plan, planned.problem.graph, "p.json");
  std::vector<int> in_flight;
  for (const InFlight& stage : planned.steps.in_flight(plan.shape()))
    in_flight.push_back(stage.all);
  const auto found =
      schedule::problems(schedule::make_schedule(plan.shape()), plan.shape(), in_flight);
  EXPECT_TRUE(found.empty());
}

TEST(PlanFile, ReadsBackWhatItWrote) {
  const test::TemporaryDirectory directory;
  const Planned planned;
  save_plan(planned.plan, directory / "plan.json");
  EXPECT_EQ(to_json(load_plan(directory / "plan.json")), to_json(planned.plan));
  // The plan of a run without stages, too.
  const Plan data = data_parallel_plan({.global = 8, .micro = 2, .accumulation = 2, .ranks = 2});
  EXPECT_EQ(to_json(plan_from_json(to_json(data), "p.json")), to_json(data));
}

TEST(PlanFile, RefusesWhatDoesNotFitTogether) {
  const nlohmann::json good = to_json(Planned().plan);
  const auto changed = [&](const std::string& path, const nlohmann::json& value) {
    nlohmann::json json = good;
    json[nlohmann::json::json_pointer(path)] = value;
    return json;
  };
  expect_refused(changed("/version", 2), "version 2");
  expect_refused(changed("/schedule", "2f2b"), "schedule must be one of accumulate, gpipe, 1f1b");
  expect_refused(changed("/schedule", "accumulate"), "does not allow 3 stages");
  expect_refused(changed("/kind", "magic"), "kind must be data, pipeline");
  expect_refused(changed("/stages", 2), "stage_list has 3 stages, 'stages' says 2");
  expect_refused(changed("/chunks", 2), "no multiple of 2 chunks");
  expect_refused(changed("/micro_batches", 3), "can't be divided into 3 micro-batches");
  expect_refused(changed("/micro_batches", 8), "1 samples can't be divided among 2 replicas");
  expect_refused(changed("/micro_batches", 2), "p.json: micro_batch must be 2 by the rest");
  expect_refused(changed("/micro_batch", 3), "p.json: micro_batch must be 1 by the rest");
  expect_refused(changed("/replicas", 1), "p.json: replicas must be 2 by the rest");
  expect_refused(changed("/ranks", 3), "p.json: ranks must be 4 by the rest");
  expect_refused(changed("/kind", "pipeline"), "p.json: kind must be hybrid by the rest");
  expect_refused(changed("/tensor", 2),
                 "p.json: tensor must be a divisor of the ranks of each stage");
  expect_refused(changed("/stage_list/0/ops/0", good["stage_list"][1]["ops"][0]), "two places");
  expect_refused(changed("/stage_list/0/ops", nlohmann::json::array()), "at least one op");
  expect_refused(changed("/stage_list/1/ranks", nlohmann::json::array()), "at least one rank");
  expect_refused(changed("/stage_list/0/segments", {1, 2}), "empty where \"recompute\" is false");
  nlohmann::json recomputed = changed("/stage_list/0/recompute", true);
  recomputed["stage_list"][0]["segments"] = {1, 1};
  expect_refused(recomputed, "numbers of ops that add up to 3");
  recomputed["stage_list"][0]["segments"] = {1, 2};
  EXPECT_EQ(to_json(plan_from_json(recomputed, "p.json")), recomputed);
  expect_refused(changed("/stage_list/1/ranks/0", 0), "rank 0 is in stages 0 and 1");
  expect_refused(changed("/stage_list/0/ranks/1", 0), "a rank twice");
  expect_refused(changed("/stage_list/2/ranks/0", 9), "from 0 to 3");
  expect_refused(changed("/stage_list/2/ranks/0", -1), "stage_list[2].ranks must be");
  nlohmann::json without = good;
  without.erase("stage_list");
  expect_refused(without, "stage_list must be there");
}

TEST(PlanFile, RefusesKeysThatNobodyReads) {
  nlohmann::json json = to_json(Planned().plan);
  json["stage_list"][1]["recomputes"] = true;
  const Error error = thrown_error([&] { plan_from_json(json, "p.json"); });
  EXPECT_EQ(error.code, ErrorCode::data);
  EXPECT_EQ(error.message, "p.json: stage_list[1].recomputes is not a known key");
  EXPECT_EQ(error.hint, "did you mean recompute?");
  json = to_json(Planned().plan);
  json["colour"] = "red";
  expect_refused(json, "p.json: colour is not a known key");
}

// Without stages each rank has the whole model, and the equation of the batch must hold.
TEST(PlanFile, RefusesContradictionsOfADataParallelPlan) {
  const nlohmann::json good =
      to_json(data_parallel_plan({.global = 8, .micro = 2, .accumulation = 2, .ranks = 2}));
  for (const auto& [key, value] : std::map<std::string, nlohmann::json>{{"micro_batch", 3},
                                                                        {"ranks", 3},
                                                                        {"batch", 9},
                                                                        {"schedule", "interleaved"},
                                                                        {"stages", 2},
                                                                        {"kind", "hybrid"},
                                                                        {"chunks", 2}}) {
    nlohmann::json json = good;
    json[key] = value;
    EXPECT_EQ(thrown_error([&] { plan_from_json(json, "p.json"); }).code, ErrorCode::data) << key;
  }
}

TEST(PlanFile, RefusesAPlanOfAnotherModel) {
  const Planned planned;
  const auto refused = [&](const Plan& plan) {
    return thrown_error([&] { check_against(plan, planned.problem.graph, "p.json"); }).message;
  };
  Plan missing = planned.plan;
  missing.stage_list[1].ops.pop_back();
  EXPECT_NE(refused(missing).find("is in no stage"), std::string::npos);
  Plan unknown = planned.plan;
  unknown.stage_list[1].ops.emplace_back("op99");
  EXPECT_NE(refused(unknown).find("the model has no op 'op99'"), std::string::npos);
  Plan backwards = planned.plan;
  std::swap(backwards.stage_list[0].ops, backwards.stage_list[2].ops);
  EXPECT_NE(refused(backwards).find("stages would wait for each other"), std::string::npos);
}

TEST(PlanFile, RefusesSegmentsThatWouldWaitForLaterOnes) {
  const Planned planned;
  Plan plan = planned.plan;
  Stage& first = plan.stage_list[0];
  first.recompute = true;
  first.segments = {1, 2};
  check_against(plan, planned.problem.graph, "p.json");
  std::ranges::reverse(first.ops);
  const Error error = thrown_error([&] { check_against(plan, planned.problem.graph, "p.json"); });
  EXPECT_NE(error.message.find("of a later segment"), std::string::npos) << error.message;
}

TEST(PlanFile, RefusesRanksThatAreNotThere) {
  const Planned planned;
  check_ranks(planned.plan, 4, "p.json");
  const Error error = thrown_error([&] { check_ranks(planned.plan, 3, "p.json"); });
  EXPECT_EQ(error.code, ErrorCode::usage);
  EXPECT_EQ(error.hint, "start it with -n 4, or make a plan for 3 devices");
}

TEST(PlanFile, SurvivesWrongTypesEverywhere) {
  test::survives_wrong_types(to_json(Planned().plan),
                             [](const nlohmann::json& json) { plan_from_json(json, "p.json"); });
}

}  // namespace
}  // namespace renkei::plan
