#include "comm/clock_offset.h"

#include <gtest/gtest.h>

#include "comm/transport/thread_transport.h"

namespace renkei::comm {
namespace {

// The clock of a host that was started at another time.
class OtherClock : public Clock {
 public:
  explicit OtherClock(double ahead) : ahead_(ahead) {}
  double seconds() const override { return now_seconds() + ahead_; }

 private:
  double ahead_;
};

TEST(ClockDifference, IsFoundWithinItsError) {
  run_as_threads(4,
                 [](Transport& transport) {
                   const OtherClock clock(-1000.0 * transport.rank());
                   const ClockDifference found = clock_difference(transport, clock, {});
                   EXPECT_GE(found.error, 0);
                   // Clocks are numbers of some 1e5 seconds: a double can't be finer.
                   EXPECT_LE(std::abs(found.seconds - 1000.0 * transport.rank()),
                             found.error + 1e-9);
                 },
                 {.hosts = {"a", "b", "c", "d"}});
}

TEST(ClockDifference, IsNothingOnOneHost) {
  run_as_threads(3,
                 [](Transport& transport) {
                   const OtherClock clock(transport.rank());
                   const ClockDifference found = clock_difference(transport, clock, {});
                   EXPECT_EQ(found.seconds == 0, transport.host(transport.rank()) == "a");
                 },
                 {.hosts = {"a", "a", "b"}});
}

}  // namespace
}  // namespace renkei::comm
