#include "comm/transport/sub_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/error.h"
#include "comm/allreduce.h"
#include "comm/collectives/barrier.h"
#include "comm/communicator.h"
#include "comm/transport/thread_transport.h"

namespace renkei::comm {
namespace {

TEST(SubTransport, NumbersItsMembersInTheGivenOrder) {
  run_as_threads(
      4,
      [](Transport& transport) {
        if (transport.rank() == 1) return;
        SubTransport some(transport, {3, 0, 2}, 16);
        EXPECT_EQ(some.size(), 3);
        EXPECT_EQ(some.rank(), transport.rank() == 3 ? 0 : transport.rank() == 0 ? 1 : 2);
        EXPECT_EQ(some.host(0), "d");
        EXPECT_THROW(some.send(3, {}, 0), Error);
        std::vector<int64_t> sum = {transport.rank()};
        allreduce(some, std::span(sum), Reduction::sum);
        EXPECT_EQ(sum[0], 5);
        barrier(some);
      },
      {.hosts = {"a", "b", "c", "d"}});
}

TEST(SubTransport, KeepsItsMessagesApartFromTheParents) {
  run_as_threads(2, [](Transport& transport) {
    SubTransport view(transport, {0, 1}, 16);
    int64_t one = 1, two = 2, from_view = 0, from_parent = 0;
    const auto bytes = [](int64_t& value) { return std::as_writable_bytes(std::span(&value, 1)); };
    const int peer = 1 - transport.rank();
    transport.send(peer, bytes(one), 7);
    view.send(peer, bytes(two), 7);
    Request of_view = view.receive(peer, bytes(from_view), 7);
    view.wait(of_view, {});
    Request of_parent = transport.receive(peer, bytes(from_parent), 7);
    transport.wait(of_parent, {});
    EXPECT_EQ(from_view, 2);
    EXPECT_EQ(from_parent, 1);
    EXPECT_THROW(SubTransport(transport, {peer}, 1), Error);
  });
}

TEST(SubTransport, RefusesAChannelThatItsRanksUseAlready) {
  run_as_threads(2, [](Transport& transport) {
    {
      SubTransport both(transport, {0, 1}, 16);
      EXPECT_THROW(SubTransport(transport, {0, 1}, 16), Error);
      // Views of a view count from it.
      SubTransport inner(both, {1, 0}, 3);
      EXPECT_THROW(SubTransport(transport, {1, 0}, 19), Error);
      // Other ranks, another channel, and the parent's own, which keeps nothing apart.
      SubTransport alone(transport, {transport.rank()}, 16), other(transport, {0, 1}, 17);
      SubTransport same(transport, {0, 1}, 0), same_again(transport, {0, 1}, 0);
    }
    SubTransport free_again(transport, {0, 1}, 16);
    EXPECT_THROW(SubTransport(transport, {0, 1}, kChannels), Error);
    EXPECT_THROW(SubTransport(free_again, {0, 1}, kChannels - 16), Error);
  });
}

TEST(SubTransport, NamesTheParentsRanksInErrors) {
  try {
    run_as_threads(3, [](Transport& transport) {
      if (transport.rank() != 1) return;
      SubTransport view(transport, {1, 2}, 16);
      barrier(view, {.timeout_seconds = 0.05});
    });
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_THAT(error.message, testing::HasSubstr("rank 1 (host thread-host) waited 50 ms for "
                                                  "rank 2 (host thread-host) in barrier"));
  }
}

// In shared memory too, whose barrier knows the members of the group only.
TEST(SubTransport, NamesTheParentsRanksWhenAMemberStaysAway) {
  std::atomic<bool> told = false;
  const auto stay_away = [&](Transport& transport) {
    if (transport.rank() == 0) return;
    SubTransport view(transport, {2, 1}, 16);
    Communicator communicator(view, {});
    // Leaving would be noticed before the time is over.
    if (transport.rank() == 1)
      while (!told) std::this_thread::yield();
    try {
      if (transport.rank() == 2) communicator.barrier({.timeout_seconds = 0.05});
    } catch (const Error&) {
      told = true;
      throw;
    }
  };
  try {
    run_as_threads(3, stay_away);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_THAT(error.message, testing::StartsWith("rank 2 (host thread-host) waited "));
    EXPECT_THAT(error.message, testing::HasSubstr("for rank 1 (host thread-host) in barrier"));
    EXPECT_EQ(error.rank, 1);
  }
}

}  // namespace
}  // namespace renkei::comm
