#include "plan/batch.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/base/thrown_error.h"

namespace renkei::plan {
namespace {

using test::thrown_error;

TEST(BatchSizes, TheMicroBatchFollowsFromTheGlobalBatch) {
  const BatchSizes sizes = infer_batch_sizes({.global = 64}, 4);
  EXPECT_EQ(sizes.micro, 16);
  EXPECT_EQ(sizes.accumulation, 1);
  EXPECT_EQ(sizes.equation(), "batch 64 = micro-batch 16 × 1 micro-batch × 4 ranks");
}

TEST(BatchSizes, AnyTwoOfThreeGiveTheThird) {
  for (const int64_t micro : {1, 3, 8})
    for (const int64_t accumulation : {1, 2, 5})
      for (const int ranks : {1, 2, 7}) {
        const int64_t global = micro * accumulation * ranks;
        for (const BatchRequest& request :
             {BatchRequest{.global = global, .micro = micro},
              BatchRequest{.global = global, .accumulation = accumulation},
              BatchRequest{.micro = micro, .accumulation = accumulation},
              BatchRequest{.global = global, .micro = micro, .accumulation = accumulation},
              BatchRequest{.per_device = micro * accumulation, .micro = micro}}) {
          const BatchSizes sizes = infer_batch_sizes(request, ranks);
          EXPECT_EQ(sizes.global, global);
          EXPECT_EQ(sizes.micro, micro);
          EXPECT_EQ(sizes.accumulation, accumulation);
        }
      }
}

TEST(BatchSizes, AnUnevenBatchIsDealtOutAsEvenlyAsCanBe) {
  const BatchSizes sizes = infer_batch_sizes({.global = 64}, 3);
  EXPECT_EQ(sizes.micro, 22);
  EXPECT_EQ(sizes.equation(), "batch 64 over 3 ranks × 1 micro-batch: 22 or 21 samples each");
}

TEST(BatchSizes, ABatchWithoutASampleForEachIsRefused) {
  const Error error = thrown_error([] { infer_batch_sizes({.global = 3}, 8); });
  EXPECT_EQ(error.code, ErrorCode::usage);
  EXPECT_EQ(error.message, "a batch of 3 has no sample for each of 8 ranks × 1 micro-batches");
  EXPECT_EQ(error.hint, "use a batch of 8");
}

TEST(BatchSizes, ContradictionsAreRefused) {
  for (const BatchRequest& request :
       {BatchRequest{.global = 64, .micro = 8, .accumulation = 3},
        BatchRequest{.global = 64, .per_device = 8}, BatchRequest{.global = 10, .micro = 4}})
    EXPECT_EQ(thrown_error([&] { infer_batch_sizes(request, 2); }).code, ErrorCode::usage);
}

}  // namespace
}  // namespace renkei::plan
