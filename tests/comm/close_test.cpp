// Collective resources end with close(). Destructors communicate with nobody: while a rank unwinds
// after an error, the others are somewhere else and would never answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "comm/async_reducer.h"
#include "comm/communicator.h"
#include "comm/transport/sub_transport.h"
#include "comm/transport/tags.h"
#include "comm/transport/thread_transport.h"

namespace renkei::comm {
namespace {

constexpr int kTest = channels::kStaging;

// Counts the messages of this rank, in both directions.
class WatchedTransport : public SubTransport {
 public:
  explicit WatchedTransport(Transport& parent) : SubTransport(parent, {0, 1}, kTest) {}
  Request send(int to, std::span<const std::byte> bytes, int tag) override {
    ++messages;
    return SubTransport::send(to, bytes, tag);
  }
  Request receive(int from, std::span<std::byte> bytes, int tag) override {
    ++messages;
    return SubTransport::receive(from, bytes, tag);
  }
  std::atomic<int> messages = 0;
};

void send_word(Transport& transport, int to) {
  std::byte word{};
  Request request = transport.send(to, {&word, 1}, 3);
  transport.wait(request, {});
}

void await_word(Transport& transport, int from) {
  std::byte word{};
  Request request = transport.receive(from, {&word, 1}, 3);
  transport.wait(request, {.timeout_seconds = 20});
}

const std::vector<std::vector<std::string>> kLayouts = {{"a", "a"}, {"a", "b"}};

// Rank 0 unwinds, or just leaves the frame, while rank 1 waits for something else.
TEST(Communicator, IsDestroyedWithoutAMessage) {
  for (const auto& hosts : kLayouts)
    for (const bool fails : {true, false}) {
      const auto body = [&](Transport& parent) {
        WatchedTransport transport(parent);
        int before = 0;
        try {
          Communicator communicator(transport, {});
          communicator.allocate(1000, DType::f32);
          communicator.barrier({});
          if (parent.rank() == 1) return await_word(parent, 0);
          before = transport.messages;
          if (fails) throw Error(ErrorCode::data, "rank 0 lost its data");
        } catch (const Error& error) {
          EXPECT_EQ(error.message, "rank 0 lost its data");
        }
        EXPECT_EQ(transport.messages, before);
        send_word(parent, 1);
      };
      run_as_threads(2, body, {.hosts = hosts, .rendezvous = true});
    }
}

TEST(Communicator, IsClosedByAllRanksTogether) {
  for (const auto& hosts : kLayouts)
    run_as_threads(2,
                   [&](Transport& transport) {
                     for (int round = 0; round < 3; ++round) {
                       Communicator communicator(transport, {});
                       const Buffer buffer = communicator.allocate(1000, DType::f32);
                       communicator.allocate_once(1000, DType::f32);
                       communicator.allreduce(buffer, Reduction::sum, {});
                       communicator.close();
                     }
                     transport.close();
                   },
                   {.hosts = hosts});
}

TEST(Communicator, NamesARankThatDoesNotComeToItsEnd) {
  std::atomic<bool> told = false;
  run_as_threads(2, [&](Transport& transport) {
    Communicator communicator(transport, {.timeout_seconds = 1});
    if (transport.rank() == 1) {
      while (!told) std::this_thread::yield();
      return;
    }
    try {
      communicator.close();
      ADD_FAILURE() << "it went on without rank 1";
    } catch (const Timeout& error) {
      EXPECT_EQ(error.rank, 1);
      EXPECT_THAT(error.message, testing::HasSubstr("in close (end of communication)"));
    }
    told = true;
  });
}

// What is not reduced when the caller fails stays so: the other ranks will not come.
TEST(AsyncReducer, ReducesNothingMoreWhileTheCallerUnwinds) {
  for (const bool overlap : {true, false})
    run_as_threads(2, [&](Transport& parent) {
      WatchedTransport transport(parent);
      int before = 0;
      try {
        const CostModel model;
        Communicator communicator(transport, {.shared_memory = false, .cost_model = model});
        std::vector<float> values(10);
        AsyncReducer reducer(
            2, [&](int, int64_t) { communicator.allreduce(std::span(values), Reduction::sum, {}); },
            overlap);
        reducer.start(0);
        reducer.submit(1);  // bucket 0 comes first, and is not ready
        if (parent.rank() == 1) return await_word(parent, 0);
        before = transport.messages;
        throw Error(ErrorCode::data, "rank 0 lost its data");
      } catch (const Error&) {
      }
      EXPECT_EQ(transport.messages, before);
      send_word(parent, 1);
    });
}

}  // namespace
}  // namespace renkei::comm
