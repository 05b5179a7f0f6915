#include "comm/transport/host_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "comm/allreduce.h"
#include "tests/comm/host_ranks.h"
#include "tests/comm/patterns.h"

namespace renkei::comm {
namespace {

using testing::HasSubstr;

const Call kCall{.operation = "test", .timeout_seconds = 60};

TEST(HostTransport, DeliversMessagesOfAnySizeInOrderAndByTag) {
  run_on_host(3, [](Transport& t) {
    const int next = (t.rank() + 1) % 3, before = (t.rank() + 2) % 3;
    const size_t sizes[] = {0, 1, 63, 64 << 10, (64 << 10) + 1, 300'001};  // of 4 bytes
    std::vector<Request> sends;
    std::vector<std::vector<float>> sent;
    for (const size_t size : sizes)
      for (const int tag : {1, 2}) {
        sent.push_back(pattern<float>(t.rank(), size, static_cast<uint32_t>(tag)));
        sends.push_back(t.send(next, std::as_bytes(std::span(sent.back())), tag));
      }
    // The second tag first: messages of another tag must not be in the way.
    for (const int tag : {2, 1})
      for (const size_t size : sizes) {
        std::vector<float> got(size);
        Request request = t.receive(before, std::as_writable_bytes(std::span(got)), tag);
        t.wait(request, kCall);
        EXPECT_EQ(got, pattern<float>(before, size, static_cast<uint32_t>(tag)));
      }
    for (Request& request : sends) t.wait(request, kCall);
  });
}

TEST(HostTransport, CarriesTheAlgorithmsOfMessages) {
  run_on_host(3, [](Transport& t) {
    for (const Algorithm algorithm : {Algorithm::ring, Algorithm::tree}) {
      auto mine = pattern<float>(t.rank(), 50'000);
      allreduce(t, Buffer(std::span(mine)), Reduction::sum, kCall, {.algorithm = algorithm});
      std::vector<float> sum(50'000);
      for (int rank = 0; rank < 3; ++rank) {
        const auto theirs = pattern<float>(rank, 50'000);
        for (size_t i = 0; i < sum.size(); ++i) sum[i] += theirs[i];
      }
      EXPECT_EQ(mine, sum);
    }
  });
}

TEST(HostTransport, SaysWhoSendsSomethingElseThanWasExpected) {
  run_on_host(2, [](Transport& t) {
    std::vector<float> values(t.rank() == 0 ? 10 : 20);
    Request request = t.rank() == 0 ? t.send(1, std::as_bytes(std::span(values)), 3)
                                    : t.receive(0, std::as_writable_bytes(std::span(values)), 3);
    if (t.rank() == 0) return t.wait(request, kCall);
    try {
      t.wait(request, kCall);
      FAIL();
    } catch (const Error& error) {
      EXPECT_THAT(error.message, HasSubstr("expected 80 bytes from rank 0"));
      EXPECT_THAT(error.message, HasSubstr("40 bytes arrived"));
    }
  });
}

TEST(HostTransport, NamesTheRankThatDoesNotSend) {
  run_on_host(2, [](Transport& t) {
    if (t.rank() == 1) return;
    float value = 0;
    Request request = t.receive(1, std::as_writable_bytes(std::span(&value, 1)), 3);
    try {
      t.wait(request, {.operation = "a recv", .timeout_seconds = 0.1});
      FAIL();
    } catch (const Timeout& error) {
      EXPECT_EQ(error.rank, 1);
      EXPECT_THAT(error.message, HasSubstr("rank 1 (host here) in a recv"));
    }
  });
}

TEST(HostTransport, FindsTheSenderOfAMessageFromAnyRank) {
  run_on_host(3, [](Transport& t) {
    const int value = 10 * t.rank();
    if (t.rank() != 0) {
      Request request = t.send(0, std::as_bytes(std::span(&value, 1)), 7);
      return t.wait(request, kCall);
    }
    int sum = 0;
    for (int message = 0; message < 2; ++message) {
      int sender = -1, got = 0;
      while (sender < 0) sender = t.sender_of_next(7);
      Request request = t.receive(sender, std::as_writable_bytes(std::span(&got, 1)), 7);
      t.wait(request, kCall);
      EXPECT_EQ(got, 10 * sender);
      sum += got;
    }
    EXPECT_EQ(sum, 30);
  });
}

}  // namespace
}  // namespace renkei::comm
