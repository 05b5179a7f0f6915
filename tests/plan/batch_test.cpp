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

TEST(BatchSizes, AnUnevenBatchIsRefusedWithWhatWouldWork) {
  const Error error = thrown_error([] { infer_batch_sizes({.global = 7}, 2); });
  EXPECT_EQ(error.code, ErrorCode::usage);
  EXPECT_EQ(error.message, "a batch of 7 can't be split evenly over 2 ranks");
  EXPECT_EQ(error.hint, "use a batch of 6 or 8, or 1 rank");
}

TEST(BatchSizes, ABatchSmallerThanTheRanksIsRefused) {
  EXPECT_EQ(thrown_error([] { infer_batch_sizes({.global = 3}, 8); }).hint,
            "use a batch of 8, or 3 ranks");
}

TEST(BatchSizes, ContradictionsAreRefused) {
  for (const BatchRequest& request :
       {BatchRequest{.global = 64, .micro = 8, .accumulation = 3},
        BatchRequest{.global = 64, .per_device = 8}, BatchRequest{.global = 10, .micro = 4}})
    EXPECT_EQ(thrown_error([&] { infer_batch_sizes(request, 2); }).code, ErrorCode::usage);
}

}  // namespace
}  // namespace renkei::plan
