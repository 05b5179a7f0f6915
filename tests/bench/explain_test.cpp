#include "bench/explain.h"

#include <gtest/gtest.h>

#include "comm/transport/thread_transport.h"

namespace renkei::bench {
namespace {

Explanation explain(comm::Transport& transport, const comm::CommunicatorOptions& options) {
  comm::Communicator communicator(transport, options);
  const auto explanation = explain_choices(communicator, {.sizes_bytes = {256, 65536}, .rounds = 1},
                                           [](const ExplainedRow&) {});
  for (const ExplainedRow& row : explanation.rows)
    EXPECT_TRUE(row.chosen().algorithm.starts_with(communicator.choice(
        comm::Collective::allreduce,
        communicator.allocate(static_cast<size_t>(row.count), comm::DType::f32))));
  communicator.barrier({});
  return explanation;
}

TEST(Explanation, ComparesSharedMemoryWithMessagesOnOneHost) {
  comm::run_as_threads(2, [](comm::Transport& t) {
    const Explanation explanation = explain(t, {});
    ASSERT_EQ(explanation.rows.size(), 2u);
    EXPECT_EQ(explanation.rows[1].size_bytes, 65536);
    for (const ExplainedRow& row : explanation.rows) {
      ASSERT_GE(row.candidates.size(), 4u);  // three algorithms with messages
      EXPECT_EQ(row.chosen().algorithm, "shared memory");
      for (const ExplainedCandidate& candidate : row.candidates) {
        EXPECT_EQ(candidate.chosen, &candidate == &row.chosen());
        EXPECT_GT(candidate.predicted_us.value_or(0), 0) << candidate.algorithm;
        EXPECT_GT(candidate.measured_us.value_or(0), 0) << candidate.algorithm;
        EXPECT_FALSE(candidate.reason.empty());
      }
    }
  });
}

TEST(Explanation, DoesNotMeasureWhatTheOptionsRuleOut) {
  comm::run_as_threads(
      3,
      [](comm::Transport& t) {
        for (const ExplainedRow& row : explain(t, {.wire = comm::DType::bf16}).rows) {
          EXPECT_EQ(row.chosen().algorithm, "ring");
          for (const ExplainedCandidate& candidate : row.candidates)
            EXPECT_EQ(candidate.measured_us.has_value(), candidate.algorithm == "ring");
        }
      },
      {.hosts = {"a", "b", "c"}});
}

TEST(Explanation, NamesTheOneThatWasFastest) {
  ExplainedRow row;
  row.candidates.resize(3);
  row.candidates[0].measured_us = 5;
  row.candidates[2].measured_us = 3;
  EXPECT_EQ(&row.fastest(), &row.candidates[2]);
}

}  // namespace
}  // namespace renkei::bench
