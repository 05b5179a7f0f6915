#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <thread>

#include "comm/communicator.h"
#include "comm/transport/thread_transport.h"

namespace renkei::comm {
namespace {

using testing::HasSubstr;

// What the ranks say of a rank that stays away while they make something.
void expect_all_name_rank_2(const std::function<void(Transport&)>& make,
                            const std::string& operation) {
  std::atomic<int> told = 0;
  const auto body = [&](Transport& transport) {
    if (transport.rank() == 2) {
      while (told < 3) std::this_thread::yield();
      return;
    }
    try {
      make(transport);
      ADD_FAILURE() << "rank " << transport.rank() << " went on without rank 2";
    } catch (const Timeout& error) {
      EXPECT_EQ(error.rank, 2);
      EXPECT_EQ(error.host, "n1");
      EXPECT_THAT(error.message, HasSubstr("for rank 2 (host n1) in " + operation));
    }
    ++told;
  };
  for (const bool rendezvous : {false, true}) {
    told = 0;
    run_as_threads(4, body, {.hosts = std::vector<std::string>(4, "n1"), .rendezvous = rendezvous});
  }
}

TEST(SharedMemory, NamesARankThatNeverComesToItsCreation) {
  expect_all_name_rank_2(
      [](Transport& transport) { Communicator(transport, {.timeout_seconds = 1}); },
      "creation of shared memory");
  expect_all_name_rank_2(
      [](Transport& transport) {
        transport.share(100, {.operation = "the cache", .timeout_seconds = 1});
      },
      "the cache");
}

TEST(SharedMemory, OfDifferentSizesIsRefused) {
  try {
    run_as_threads(2, [](Transport& t) { t.share(t.rank() == 0 ? 100 : 5000); });
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_THAT(error.message, HasSubstr(" bytes, but rank "));
    EXPECT_THAT(error.message, HasSubstr("5000"));
  }
}

}  // namespace
}  // namespace renkei::comm
