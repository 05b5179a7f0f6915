#include "comm/choice/cost_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "base/error.h"
#include "comm/allreduce.h"
#include "comm/choice/cost_measurement.h"
#include "comm/transport/thread_transport.h"

namespace renkei::comm {
namespace {

using testing::AnyOf;

constexpr size_t kTiny = 64, kLarge = 256 << 20;

CostModel model_of(int ranks, int hosts) {
  CostModel model;
  model.ranks = ranks;
  model.hosts = hosts;
  return model;
}

double seconds(const CostModel& model, Algorithm algorithm, size_t bytes) {
  return predicted_seconds(model, algorithm, bytes, 128 * 1024);
}

TEST(CostModel, ChoosesFewStepsForTinyBuffers) {
  for (const int ranks : {2, 3, 4, 7, 8, 16, 100}) {
    EXPECT_THAT(choose(model_of(ranks, 1), kTiny).algorithm,
                AnyOf(Algorithm::tree, Algorithm::halving_doubling));
    EXPECT_THAT(choose(model_of(ranks, ranks), kTiny).algorithm,
                AnyOf(Algorithm::tree, Algorithm::halving_doubling));
  }
}

TEST(CostModel, ChoosesTheRingForLargeBuffers) {
  for (const int ranks : {3, 5, 7, 11})
    for (const int hosts : {1, ranks})
      EXPECT_EQ(choose(model_of(ranks, hosts), kLarge).algorithm, Algorithm::ring) << ranks;
}

TEST(CostModel, ChoosesHierarchicalWhereInsideIsMuchFaster) {
  for (const int hosts : {2, 3, 4})
    for (const int local : {2, 4, 8}) {
      CostModel model = model_of(hosts * local, hosts);
      model.inside = {1e-6, 20e9};
      model.between = {50e-6, 125e6};
      EXPECT_EQ(choose(model, 1 << 20).algorithm, Algorithm::hierarchical) << hosts << " " << local;
    }
}

TEST(CostModel, NeverChoosesHierarchicalWhereThereIsOneLevel) {
  for (const int hosts : {1, 8})
    for (const Prediction& candidate : choose(model_of(8, hosts), 1 << 20).candidates)
      EXPECT_NE(candidate.algorithm, Algorithm::hierarchical);
}

TEST(CostModel, AgreesWithTheTextbook) {
  CostModel model = model_of(8, 1);
  model.inside = {10e-6, 1e9};
  model.reduce_bytes_per_second = 1e18;  // nothing
  const double b = 8e6, a = 10e-6, t = 1e-9;
  const auto whole = [&](Algorithm algorithm) {
    return predicted_seconds(model, algorithm, static_cast<size_t>(b), size_t{1} << 30);
  };
  EXPECT_NEAR(whole(Algorithm::ring), 14 * a + 2 * b * 7 / 8 * t, 1e-8);
  EXPECT_NEAR(whole(Algorithm::halving_doubling), 6 * a + 2 * b * 7 / 8 * t, 1e-8);
  EXPECT_NEAR(whole(Algorithm::tree), 6 * (a + b * t), 1e-8);
  // 2 rows of 4: 6 steps of b/4 in a row, 2 steps of b/4/2 in a column.
  EXPECT_NEAR(whole(Algorithm::torus), 8 * a + 2 * b * 7 / 8 * t, 1e-8);

  model.hosts = 2;
  model.between = {100e-6, 1e8};
  EXPECT_NEAR(whole(Algorithm::hierarchical),
              6 * a + 2 * b * 3 / 4 * t + 2 * 100e-6 + 2 * b / 2 * 1e-8, 1e-8);
}

TEST(CostModel, PredictsMoreTimeForMoreBytesRanksAndLatency) {
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::halving_doubling, Algorithm::tree,
                                    Algorithm::torus, Algorithm::hierarchical}) {
    const CostModel model = model_of(16, 4);
    EXPECT_LT(seconds(model, algorithm, 1 << 10), seconds(model, algorithm, 1 << 20));
    EXPECT_LT(seconds(model, algorithm, 1 << 20), seconds(model, algorithm, 1 << 26));
    CostModel slow = model;
    slow.between.latency_seconds *= 2;
    EXPECT_LT(seconds(model, algorithm, 1 << 10), seconds(slow, algorithm, 1 << 10));
    EXPECT_LE(seconds(model, algorithm, 1 << 20), seconds(model_of(64, 16), algorithm, 1 << 20));
  }
}

TEST(CostModel, ExplainsItsChoiceWithAllCandidates) {
  const Choice choice = choose(model_of(8, 2), 1 << 20);
  EXPECT_EQ(choice.candidates.size(), 7u);  // 4 flat ones and 3 outer algorithms
  EXPECT_EQ(choice.predicted_seconds, choice.candidates.front().seconds);
  EXPECT_EQ(choice.algorithm, choice.candidates.front().algorithm);
  EXPECT_LE(choice.predicted_seconds, 1.02 * choice.candidates[1].seconds);
  for (size_t i = 2; i < choice.candidates.size(); ++i)
    EXPECT_GE(choice.candidates[i].seconds, choice.candidates[i - 1].seconds);
}

TEST(CostModel, SegmentsGrowWithTheBufferAndTheLatency) {
  CostModel model = model_of(4, 1);
  const size_t small = best_segment_bytes(model, Algorithm::ring, 1 << 18);
  const size_t large = best_segment_bytes(model, Algorithm::ring, 1 << 28);
  EXPECT_LT(small, large);
  model.inside.latency_seconds *= 16;
  EXPECT_LT(large, best_segment_bytes(model, Algorithm::ring, 1 << 28));
}

TEST(CostModel, OneRankNeedsNoTime) {
  EXPECT_EQ(choose(model_of(1, 1), kLarge).predicted_seconds, 0);
}

TEST(CostModel, KnowsItsAlgorithmsByName) {
  for (const Algorithm algorithm :
       {Algorithm::automatic, Algorithm::ring, Algorithm::halving_doubling, Algorithm::tree,
        Algorithm::torus, Algorithm::hierarchical})
    EXPECT_EQ(parse_algorithm(name_of(algorithm)), algorithm);
  EXPECT_THROW(parse_algorithm("rings"), Error);
}

TEST(CostMeasurement, GivesAllRanksTheSameModel) {
  for (const std::vector<std::string>& hosts :
       {std::vector<std::string>{"a"}, {"a", "a"}, {"a", "b"}, {"a", "a", "b", "b", "b"}}) {
    std::vector<CostModel> models(hosts.size());
    run_as_threads(static_cast<int>(hosts.size()),
                   [&](Transport& transport) {
                     models[static_cast<size_t>(transport.rank())] = measure_cost_model(transport);
                   },
                   {.hosts = hosts, .rendezvous = true});
    for (const CostModel& model : models) {
      EXPECT_EQ(model.inside.latency_seconds, models[0].inside.latency_seconds);
      EXPECT_EQ(model.between.bytes_per_second, models[0].between.bytes_per_second);
      EXPECT_EQ(model.reduce_bytes_per_second, models[0].reduce_bytes_per_second);
      EXPECT_GT(model.inside.latency_seconds, 0);
      EXPECT_LT(model.inside.latency_seconds, 10);
      EXPECT_GT(model.between.bytes_per_second, 1e5);
      EXPECT_GT(model.reduce_bytes_per_second, 1e6);
      EXPECT_EQ(model.ranks, static_cast<int>(hosts.size()));
    }
    EXPECT_EQ(models[0].even, hosts.size() != 5);
  }
}

TEST(CostMeasurement, ServesTheAutomaticChoice) {
  run_as_threads(4, [](Transport& transport) {
    CostModel model = cost_model_for(transport);
    model.inside = {1, 1e12};  // only steps count
    EXPECT_THAT(resolved(transport, kLarge, DType::f32, {.model = &model}).algorithm,
                AnyOf(Algorithm::tree, Algorithm::halving_doubling));
    std::vector<float> buffer(1000, 1);
    allreduce(transport, std::span(buffer), Reduction::mean, {}, {.model = &model});
    EXPECT_EQ(buffer, std::vector<float>(1000, 1));
  });
}

}  // namespace
}  // namespace renkei::comm
