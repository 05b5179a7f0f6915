#include "comm/communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "comm/buffer/chunk_range.h"
#include "comm/choice/cost_measurement.h"
#include "comm/transport/thread_transport.h"
#include "tests/comm/patterns.h"

namespace renkei::comm {
namespace {

using testing::HasSubstr;

constexpr size_t kCount = 5003;  // no multiple of the ranks

// A buffer of the communicator, or private memory.
struct Memory {
  Memory(Communicator& communicator, bool shared) : own(shared ? 0 : kCount) {
    buffer = shared ? communicator.allocate(kCount, DType::f32) : Buffer(std::span(own));
  }
  std::span<float> values() { return elements_of<float>(buffer); }
  std::vector<float> own;
  Buffer buffer;
};

// On one host with and without shared memory, and on two hosts.
void on_all_layouts(const std::function<void(Communicator&, bool shared)>& body) {
  for (const bool shared_memory : {true, false})
    for (const auto& hosts : {std::vector<std::string>{"a", "a", "a"}, {"a", "b", "a"}})
      for (const bool shared : {true, false})
        run_as_threads(3,
                       [&](Transport& t) {
                         Communicator communicator(t, {.shared_memory = shared_memory});
                         body(communicator, shared);
                       },
                       {.hosts = hosts});
}

TEST(Communicator, ScattersAReductionAndGathersItAgain) {
  const auto expected = reduced_pattern<float>(3, kCount, Reduction::sum);
  on_all_layouts([&](Communicator& communicator, bool shared) {
    const int rank = communicator.transport().rank();
    Memory memory(communicator, shared);
    std::ranges::copy(pattern<float>(rank, kCount), memory.values().begin());
    const Buffer chunk = communicator.reduce_scatter(memory.buffer, Reduction::sum, {});
    const Range mine = chunk_range(kCount, 3, rank);
    ASSERT_EQ(chunk.data, memory.buffer.part(mine.begin, mine.size()).data);
    EXPECT_TRUE(std::ranges::equal(elements_of<float>(chunk),
                                   std::span(expected).subspan(mine.begin, mine.size())));
    communicator.all_gather(memory.buffer, {});
    EXPECT_TRUE(std::ranges::equal(memory.values(), expected));
  });
}

// On one host, on several, with as many ranks each or not.
TEST(Communicator, SumsInEveryLayoutAllOrARanksChunk) {
  const std::vector<std::vector<std::string>> layouts{{"a", "a"},
                                                      {"a", "b"},
                                                      {"a", "b", "a", "b"},
                                                      {"a", "a", "b"},
                                                      {"a", "a", "a", "b", "b", "b"}};
  const std::vector<CommunicatorOptions> ways{{},
                                              {.algorithm = Algorithm::ring},
                                              {.algorithm = Algorithm::hierarchical},
                                              {.wire = DType::bf16},
                                              {.reproducible = true},
                                              {.shared_memory = false}};
  const auto check = [](Transport& t, const CommunicatorOptions& options) {
    Communicator communicator(t, options);
    const Buffer buffer = communicator.allocate(1001, DType::f32);
    const std::span<float> values(reinterpret_cast<float*>(buffer.data), 1001);
    const auto sum = static_cast<float>(t.size() * (t.size() + 1) / 2);

    std::ranges::fill(values, static_cast<float>(t.rank() + 1));
    communicator.allreduce(buffer, Reduction::sum, {});
    EXPECT_EQ(std::ranges::count(values, sum), 1001);
    communicator.barrier({});

    std::ranges::fill(values, static_cast<float>(t.rank() + 1));
    const Buffer chunk = communicator.allreduce_chunk(buffer, Reduction::sum, {});
    const Range mine = chunk_range(1001, communicator.local_size(), communicator.local_rank());
    EXPECT_EQ(chunk.count, mine.size());
    EXPECT_EQ(chunk.data, buffer.part(mine.begin, mine.size()).data);
    EXPECT_EQ(std::ranges::count(values.subspan(mine.begin, mine.size()), sum),
              static_cast<int64_t>(mine.size()));
    communicator.barrier({});
  };
  for (const auto& hosts : layouts)
    for (const CommunicatorOptions& options : ways)
      run_as_threads(static_cast<int>(hosts.size()), [&](Transport& t) { check(t, options); },
                     {.hosts = hosts});
}

TEST(Communicator, RecordsItsCollectives) {
  on_all_layouts([&](Communicator& communicator, bool shared) {
    Memory memory(communicator, shared);
    std::vector<float> from(6), into(6);
    communicator.reduce_scatter(memory.buffer, Reduction::sum, {});
    communicator.all_gather(memory.buffer, {});
    communicator.all_to_all(std::span(from), std::span(into), {.operation = "shuffle"});
    EXPECT_THAT(communicator.recorder().text(), HasSubstr("shuffle"));
    EXPECT_THAT(communicator.recorder().text(), HasSubstr("reduce_scatter"));
    EXPECT_THAT(communicator.recorder().text(), HasSubstr("all_gather"));
    communicator.barrier({});
  });
}

TEST(Communicator, PutsTheHostsOfAGroupSideBySideAndSaysSo) {
  run_as_threads(4,
                 [&](Transport& t) {
                   const Communicator communicator(t, {.host_groups = {{"a1", "a2"}, {"b1"}}});
                   EXPECT_THAT(communicator.topology(),
                               HasSubstr("ring 0,2,1,3 crosses between hosts 4 times and between "
                                         "groups 3 times; groups a1,a2;b1; 4 hosts"));
                 },
                 {.hosts = {"a1", "b1", "a2", "b2"}});
}

TEST(Communicator, KeepsTheOrderOfTheRingAmongSomeOfItsRanks) {
  run_as_threads(4,
                 [&](Transport& t) {
                   const Communicator communicator(
                       t, {.host_groups = {{"a1", "a2"}, {"b1"}}, .wire = DType::f16});
                   const CommunicatorOptions options = communicator.options_among({1, 2, 3});
                   EXPECT_THAT(options.ring_order, testing::ElementsAre(1, 0, 2));
                   EXPECT_TRUE(options.host_groups.empty());
                   EXPECT_EQ(options.wire, DType::f16);
                 },
                 {.hosts = {"a1", "b1", "a2", "b2"}});
}

TEST(Communicator, RefusesAGroupWithAHostThatHasNoRank) {
  run_as_threads(2, [&](Transport& t) {
    EXPECT_THROW(Communicator(t, {.host_groups = {{"thread-host", "elsewhere"}}}), Error);
  });
}

TEST(Settings, OfTheRingAndOfTheGroupsExcludeEachOther) {
  Settings settings;
  declare_settings(settings);
  settings.set("comm.groups", "a1,a2;b1", "--set");
  EXPECT_EQ(communicator_options(settings, 2).host_groups, (HostGroups{{"a1", "a2"}, {"b1"}}));
  settings.set("comm.ring", "1,0", "--set");
  EXPECT_THROW(communicator_options(settings, 2), Error);
}

// The candidates of 4 ranks on 2 hosts, and what the communicator itself says.
void expect_choice(const CommunicatorOptions& options, const std::string& name,
                   const std::string& reason, const std::vector<std::string>& hosts) {
  run_as_threads(static_cast<int>(hosts.size()),
                 [&](Transport& t) {
                   Communicator communicator(t, options);
                   CostModel model = cost_model_for(t);
                   const Buffer buffer = communicator.allocate(1 << 18, DType::f32);
                   const auto candidates = communicator.candidates(buffer, model);
                   ASSERT_GE(candidates.size(), 3u);
                   EXPECT_TRUE(candidates[0].chosen);
                   EXPECT_THAT(candidates[0].name, HasSubstr(name));
                   EXPECT_THAT(candidates[0].reason, HasSubstr(reason));
                   for (size_t c = 1; c < candidates.size(); ++c)
                     EXPECT_FALSE(candidates[c].chosen) << candidates[c].name;
                   // Each that is possible gives the sum.
                   const Buffer part = buffer.part(0, 4099);
                   for (const Candidate& candidate : candidates) {
                     if (!candidate.possible) continue;
                     std::ranges::fill(elements_of<float>(part), 1.0f);
                     communicator.allreduce_by(candidate, part, Reduction::sum, {});
                     EXPECT_TRUE(std::ranges::all_of(elements_of<float>(part), [&](float value) {
                       return value == static_cast<float>(t.size());
                     })) << candidate.name;
                     communicator.barrier({});
                   }
                 },
                 {.hosts = hosts});
}

const std::vector<std::string> kOneHost = {"a", "a", "a", "a"}, kTwoHosts = {"a", "a", "b", "b"},
                               kFourHosts = {"a", "b", "c", "d"};

TEST(Candidates, BeginWithTheChosenOneAndWhy) {
  expect_choice({}, "shared memory", "on one host", kOneHost);
  expect_choice({.shared_memory = false}, "ring", "as good as torus, and simpler", kOneHost);
  expect_choice({.algorithm = Algorithm::tree}, "tree", "comm.algorithm asks for tree", kTwoHosts);
  expect_choice({}, "hierarchical, ", "", kTwoHosts);
  expect_choice({.reproducible = true}, "reproducible", "sums in rank order", kFourHosts);
}

TEST(Candidates, IncludeOneThatOnlyTheUserSeesASenseIn) {
  expect_choice({.algorithm = Algorithm::hierarchical}, "hierarchical, ", "asks for hierarchical",
                kOneHost);
}

TEST(Candidates, SayWhoDoesNotKnow16BitsOnTheWire) {
  expect_choice({.wire = DType::f16}, "ring", "", kFourHosts);
  run_as_threads(1, [&](Transport& t) {
    CostModel model;
    model.ranks = model.hosts = 4;
    const auto candidates =
        message_candidates(t, 1 << 20, DType::f32, {.model = &model, .wire = DType::bf16});
    const auto tree = std::ranges::find(candidates, "tree", &Candidate::name);
    ASSERT_NE(tree, candidates.end());
    EXPECT_FALSE(tree->possible);
    EXPECT_EQ(tree->reason, "does not know bf16 on the wire");
  });
}

TEST(Candidates, PreferTheSimplerWhereTimesAreAsGoodAsEqual) {
  run_as_threads(1, [&](Transport& t) {
    // No latency, and a reduction that costs next to nothing: all that counts is the bytes, of
    // which ring, torus and halving-doubling send the same.
    CostModel model{.inside = {0, 1e9},
                    .between = {0, 1e9},
                    .reduce_bytes_per_second = 1e15,
                    .ranks = 4,
                    .hosts = 1};
    const auto candidates = message_candidates(t, 64 << 20, DType::f32, {.model = &model});
    EXPECT_EQ(candidates[0].name, "halving_doubling");
    EXPECT_EQ(candidates[0].reason, "predicted as good as torus, and simpler");
    model.inside.latency_seconds = 1e-3;  // per message: now the tree is right
    const auto with_latency = message_candidates(t, 64, DType::f32, {.model = &model});
    EXPECT_EQ(with_latency[0].name, "tree");
    EXPECT_EQ(with_latency[0].predicted_seconds, choose(model, 64).predicted_seconds);
  });
}

}  // namespace
}  // namespace renkei::comm
