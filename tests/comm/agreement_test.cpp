#include "comm/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/error.h"
#include "comm/allreduce.h"
#include "comm/collectives/all_gather.h"
#include "comm/collectives/broadcast.h"
#include "comm/collectives/reduce_scatter.h"
#include "comm/transport/thread_transport.h"

namespace renkei::comm {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

using Body = std::function<void(Transport&)>;

// Rank `odd` does one thing and all others another; what the first failure says.
Error error_of(int ranks, int odd, const Body& usual, const Body& unusual) {
  for (const bool rendezvous : {false, true}) {
    const double begin = now_seconds();
    try {
      run_as_threads(
          ranks,
          [&](Transport& transport) { (transport.rank() == odd ? unusual : usual)(transport); },
          {.rendezvous = rendezvous});
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code, ErrorCode::communication);
      EXPECT_LT(now_seconds() - begin, 100);
      if (rendezvous) return error;
    }
  }
  return Error(ErrorCode::bug, "nothing was thrown");
}

template <typename T>
Body allreduce_of(size_t count, Reduction reduction, Call call = {},
                  AllreduceOptions options = {}) {
  return [=](Transport& transport) {
    std::vector<T> buffer(count);
    allreduce(transport, std::span(buffer), reduction, call, options);
  };
}

TEST(Agreement, NamesBothSidesOfADifference) {
  const Body usual = allreduce_of<float>(8, Reduction::sum);
  struct Case {
    Body unusual;
    const char* text;
  };
  const Case cases[] = {
      {allreduce_of<float>(9, Reduction::sum), "allreduce (sum) of 9 f32"},
      {allreduce_of<int64_t>(4, Reduction::sum), "allreduce (sum) of 4 i64"},  // as many bytes
      {allreduce_of<float>(8, Reduction::max), "allreduce (max) of 8 f32"},
      {allreduce_of<float>(8, Reduction::sum, {.operation = "allreduce of the loss"}),
       "allreduce (sum) of 8 f32 (\"allreduce of the loss\")"},
      {allreduce_of<float>(8, Reduction::sum, {.step = 3}), "allreduce (sum) of 8 f32 in step 3"},
      {allreduce_of<float>(8, Reduction::sum, {}, {.algorithm = Algorithm::torus}),
       "allreduce (sum) of 8 f32 with other options"},
      {[](Transport& t) {
         std::vector<float> buffer(8);
         broadcast(t, std::span(buffer), 1);
       },
       "broadcast from rank 1 of 8 f32"},
      {[](Transport& t) {
         std::vector<float> buffer(8);
         reduce_scatter(t, std::span(buffer), Reduction::sum);
       },
       "reduce_scatter (sum) of 8 f32"},
      {[](Transport& t) {
         std::vector<std::byte> all(10 * static_cast<size_t>(t.size()));
         all_gather(t, std::span(all).first(10), std::span(all));
       },
       "all_gather of"},
  };
  for (const int ranks : {2, 5})
    for (const int odd : {0, ranks - 1})
      for (const Case& wrong : cases) {
        const Error error = error_of(ranks, odd, usual, wrong.unusual);
        // Whether the rank itself or its neighbour finds out first.
        const std::string text = std::string(wrong.text);
        const bool with_options = text.ends_with("options");
        EXPECT_THAT(error.message, HasSubstr("calls allreduce (sum) of 8 f32"));
        EXPECT_THAT(error.message, HasSubstr(with_options ? "with other options" : text));
        EXPECT_THAT(error.message, HasSubstr(fmt::format("rank {} (host thread-host)", odd)));
        EXPECT_THAT(error.hint, HasSubstr("same operations"));
      }
}

TEST(Agreement, FindsARankThatLeftOneOut) {
  const Body loss = allreduce_of<double>(1, Reduction::sum);
  const Body gradients = allreduce_of<float>(100, Reduction::mean);
  const Error error = error_of(
      4, 2,
      [&](Transport& t) {
        for (int i = 0; i < 5; ++i) {
          gradients(t);
          loss(t);
        }
      },
      [&](Transport& t) {
        for (int i = 0; i < 5; ++i) {
          gradients(t);
          if (i != 3) loss(t);
        }
      });
  EXPECT_THAT(error.message, AllOf(HasSubstr("allreduce (mean) of 100 f32"),
                                   HasSubstr("allreduce (sum) of 1 f64")));
}

TEST(Agreement, BroadcastChecksItsRoot) {
  const auto from = [](int root) -> Body {
    return [=](Transport& t) {
      std::vector<float> buffer(3);
      broadcast(t, std::span(buffer), root);
    };
  };
  EXPECT_THAT(error_of(3, 1, from(0), from(2)).message,
              AllOf(HasSubstr("broadcast from rank 0"), HasSubstr("broadcast from rank 2")));
}

TEST(Agreement, AllGatherVChecksItsCounts) {
  const auto with = [](std::vector<size_t> counts) -> Body {
    return [=](Transport& t) {
      std::vector<float> mine(2), all(6);
      all_gather_v(t, std::span(mine), std::span(all), counts);
    };
  };
  EXPECT_THAT(error_of(3, 0, with({2, 2, 2}), with({2, 1, 3})).message,
              HasSubstr("all_gather of 6 f32 (\"all_gather_v\") with other options"));
}

TEST(Agreement, CanBeSkipped) {
  run_as_threads(3, [](Transport& transport) {
    std::vector<float> buffer(5, 1);
    const std::string name = fmt::format("on rank {}", transport.rank());
    allreduce(transport, std::span(buffer), Reduction::sum, {.operation = name},
              {.check = Check::nothing});
    broadcast(transport, std::span(buffer), 0, {.operation = name}, Check::nothing);
    EXPECT_EQ(buffer, std::vector<float>(5, 3));
  });
}

}  // namespace
}  // namespace renkei::comm
