#include "cluster/limits.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/base/thrown_error.h"

namespace renkei::cluster {
namespace {

using test::thrown_error;

TEST(Limits, AnOrdinaryMachineIsEnoughForASmallJob) {
  EXPECT_NO_THROW(check_limits({.descriptors = 1024, .stack_bytes = 8 << 20}, 16));
  EXPECT_NO_THROW(check_limits({.descriptors = -1, .stack_bytes = -1}, 100'000));
}

TEST(Limits, ALargeJobNeedsMoreDescriptorsThanTheUsualLimit) {
  const Error error =
      thrown_error([] { check_limits({.descriptors = 1024, .stack_bytes = 8 << 20}, 1024); });
  EXPECT_EQ(error.code, ErrorCode::usage);
  EXPECT_EQ(error.message, "1024 ranks may need 2112 open files each, but the limit is 1024");
  EXPECT_EQ(error.hint, "raise it before starting: ulimit -n 2112");
}

TEST(Limits, ASmallStackIsRefusedWithTheCommandThatRaisesIt) {
  const Error error =
      thrown_error([] { check_limits({.descriptors = 4096, .stack_bytes = 256 << 10}, 256); });
  EXPECT_EQ(error.hint, "raise it before starting: ulimit -s 1024");
}

}  // namespace
}  // namespace renkei::cluster
