#include "comm/transport/thread_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "comm/collectives/barrier.h"

namespace renkei::comm {
namespace {

using testing::HasSubstr;

void send_value(Transport& transport, int to, int64_t value, int tag) {
  Request request = transport.send(to, std::as_bytes(std::span(&value, 1)), tag);
  transport.wait(request, {});
}

int64_t receive_value(Transport& transport, int from, int tag, const Call& call = {}) {
  int64_t value = -1;
  Request request = transport.receive(from, std::as_writable_bytes(std::span(&value, 1)), tag);
  transport.wait(request, call);
  return value;
}

TEST(ThreadTransport, GivesEachRankItsNumberAndHost) {
  std::atomic<int> seen = 0;
  run_as_threads(3,
                 [&](Transport& transport) {
                   seen |= 1 << transport.rank();
                   EXPECT_EQ(transport.size(), 3);
                   EXPECT_EQ(transport.host(2), "c");
                 },
                 {.hosts = {"a", "b", "c"}});
  EXPECT_EQ(seen, 0b111);
  run_as_threads(1, [](Transport& transport) { EXPECT_EQ(transport.host(0), "thread-host"); });
}

TEST(ThreadTransport, KeepsTheOrderOfATagAndKeepsTagsApart) {
  run_as_threads(2, [](Transport& transport) {
    if (transport.rank() == 0) {
      for (int64_t i = 0; i < 100; ++i) send_value(transport, 1, i, 5);
      for (int64_t i = 0; i < 100; ++i) send_value(transport, 1, 1000 + i, 6);
    } else {
      for (int64_t i = 0; i < 100; ++i) {
        EXPECT_EQ(receive_value(transport, 0, 6), 1000 + i);
        EXPECT_EQ(receive_value(transport, 0, 5), i);
      }
    }
  });
}

TEST(ThreadTransport, MatchesReceivesAsTheyWerePostedNotAsTheyAreWaitedFor) {
  run_as_threads(2, [](Transport& transport) {
    if (transport.rank() == 0) {
      send_value(transport, 1, 10, 0);
      send_value(transport, 1, 20, 0);
    } else {
      int64_t first = 0, second = 0;
      Request a = transport.receive(0, std::as_writable_bytes(std::span(&first, 1)), 0);
      Request b = transport.receive(0, std::as_writable_bytes(std::span(&second, 1)), 0);
      transport.wait(b, {});
      transport.wait(a, {});
      EXPECT_EQ(first, 10);
      EXPECT_EQ(second, 20);
      transport.wait(a, {});  // nothing is left to wait for
    }
  });
}

TEST(ThreadTransport, SendsToItselfAndSendsNothing) {
  run_as_threads(1, [](Transport& transport) {
    send_value(transport, 0, 42, 1);
    EXPECT_EQ(receive_value(transport, 0, 1), 42);
    Request receiving = transport.receive(0, {}, 2);
    Request sending = transport.send(0, {}, 2);
    transport.wait(receiving, {});
    transport.wait(sending, {});
  });
}

TEST(ThreadTransport, LetsTheSenderReuseItsMemoryAtOnce) {
  run_as_threads(2, [](Transport& transport) {
    if (transport.rank() == 0) {
      int64_t value = 1;
      Request request = transport.send(1, std::as_bytes(std::span(&value, 1)), 0);
      value = 2;
      barrier(transport);
    } else {
      barrier(transport);
      EXPECT_EQ(receive_value(transport, 0, 0), 1);
    }
  });
}

TEST(ThreadTransport, NamesBothSizesWhenTheyDiffer) {
  try {
    run_as_threads(2, [](Transport& transport) {
      std::byte bytes[24] = {};
      if (transport.rank() == 0)
        transport.send(1, bytes, 0);
      else
        receive_value(transport, 0, 0, {.operation = "hello", .step = 3});
    });
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, ErrorCode::communication);
    EXPECT_THAT(error.message, HasSubstr("expected 8 bytes from rank 0"));
    EXPECT_THAT(error.message, HasSubstr("in hello, but 24 bytes arrived"));
    EXPECT_EQ(error.step, 3);
  }
}

TEST(ThreadTransport, EndsAWaitAtItsDeadline) {
  for (const bool sends : {false, true}) {
    const double begin = now_seconds();
    try {
      run_as_threads(
          2,
          [&](Transport& transport) {
            int64_t value = 0;
            const auto bytes = std::as_writable_bytes(std::span(&value, 1));
            if (transport.rank() == 0) return;
            Request request = sends ? transport.send(0, bytes, 0) : transport.receive(0, bytes, 0);
            transport.wait(request, {.operation = "hello", .step = 9, .timeout_seconds = 0.1});
          },
          {.hosts = {"n1", "n2"}, .rendezvous = true});
      FAIL() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code, ErrorCode::communication);
      EXPECT_EQ(error.message,
                "rank 1 (host n2) waited 100 ms for rank 0 (host n1) in hello, step 9");
    }
    EXPECT_GE(now_seconds() - begin, 0.1);
  }
}

TEST(ThreadTransport, AcceptsAnInfiniteDeadline) {
  run_as_threads(2, [](Transport& transport) {
    if (transport.rank() == 0) send_value(transport, 1, 4, 0);
    if (transport.rank() == 1) {
      const Call for_ever{.timeout_seconds = std::numeric_limits<double>::infinity()};
      EXPECT_EQ(receive_value(transport, 0, 0, for_ever), 4);
    }
  });
}

TEST(ThreadTransport, AnExceptionInOneRankEndsAllAndIsTheOneRethrown) {
  const double begin = now_seconds();
  std::atomic<int> woken = 0;
  try {
    run_as_threads(8, [&](Transport& transport) {
      if (transport.rank() == 5) {
        // By now the others are asleep in the barrier, and must be woken.
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        throw std::logic_error("out of ideas");
      }
      try {
        barrier(transport, {.timeout_seconds = 20});
      } catch (const Error& error) {
        EXPECT_EQ(error.code, ErrorCode::communication);
        EXPECT_THAT(error.message, HasSubstr("because rank 5 (host thread-host) failed"));
        EXPECT_EQ(error.rank, 5);
        ++woken;
        throw;
      }
    });
    FAIL() << "nothing was thrown";
  } catch (const std::logic_error& error) {
    EXPECT_STREQ(error.what(), "out of ideas");
  }
  EXPECT_EQ(woken, 7);
  EXPECT_LT(now_seconds() - begin, 10);
}

TEST(ThreadTransport, RefusesRanksThatDoNotExist) {
  const auto nothing = [](Transport&) {};
  EXPECT_THROW(run_as_threads(0, nothing), Error);
  EXPECT_THROW(run_as_threads(2, nothing, {.hosts = {"only one"}}), Error);
  run_as_threads(2, [](Transport& transport) {
    EXPECT_THROW(transport.send(2, {}, 0), Error);
    EXPECT_THROW(transport.receive(-1, {}, 0), Error);
  });
}

}  // namespace
}  // namespace renkei::comm
