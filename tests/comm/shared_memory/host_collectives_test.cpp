#include "comm/shared_memory/host_collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "comm/message_collectives.h"
#include "tests/comm/host_ranks.h"
#include "tests/comm/patterns.h"

namespace renkei::comm {
namespace {

using testing::HasSubstr;

const Call kCall{.operation = "test", .timeout_seconds = 60};

enum class Memory { shared, own, mixed };

// Tensors of one rank, in its arena or not.
class Tensors {
 public:
  Tensors(int rank, Memory memory)
      : arena({.bytes = 256 << 20, .skew_bytes = static_cast<size_t>(rank) * 64}),
        shared_(memory == Memory::shared || (memory == Memory::mixed && rank % 2 == 0)) {}
  std::byte* make(size_t bytes) {
    if (shared_) return static_cast<std::byte*>(arena.allocate(std::max<size_t>(bytes, 1)));
    kept_.emplace_back(std::max<size_t>(bytes, 1));
    return kept_.back().data();
  }
  Buffer make(const std::vector<float>& values) {
    const Buffer buffer(make(values.size() * 4), values.size(), DType::f32);
    std::copy(values.begin(), values.end(), reinterpret_cast<float*>(buffer.data));
    return buffer;
  }
  Arena arena;

 private:
  bool shared_;
  std::vector<std::vector<std::byte>> kept_;
};

std::vector<float> values_of(const Buffer& buffer) {
  const auto* const first = reinterpret_cast<const float*>(buffer.data);
  return {first, first + buffer.count};
}

std::vector<float> sum_of(int ranks, size_t count, uint32_t salt) {
  std::vector<float> sum(count);
  for (int rank = 0; rank < ranks; ++rank) {
    const auto theirs = pattern<float>(rank, count, salt);
    for (size_t i = 0; i < count; ++i) sum[i] += theirs[i];
  }
  return sum;
}

constexpr size_t kCounts[] = {0, 7, 513, 20'000, 300'001};

// Every collective on every kind of memory, several times over, in place and not.
void check_all(GroupCollectives& group, Transport& t, Tensors& tensors) {
  const int n = t.size(), me = t.rank();
  const auto ranks = static_cast<size_t>(n), my = static_cast<size_t>(me);
  uint32_t salt = 0;
  for (const size_t count : kCounts) {
    ++salt;
    const auto mine = pattern<float>(me, count, salt), sum = sum_of(n, count, salt);
    Buffer in = tensors.make(mine), out = tensors.make(std::vector<float>(count));
    group.reduce(in, out, Reduction::sum, {}, kCall);
    EXPECT_EQ(values_of(out), sum) << count;
    EXPECT_EQ(values_of(in), mine);
    const int root = static_cast<int>(count % ranks);
    Buffer rooted = tensors.make(mine);
    group.reduce(rooted, rooted, Reduction::sum, root, kCall);
    EXPECT_EQ(values_of(rooted), me == root ? sum : mine);
    group.reduce(in, in, Reduction::sum, {}, kCall);
    EXPECT_EQ(values_of(in), sum);

    const auto long_mine = pattern<float>(me, count * ranks, salt);
    const Buffer whole = tensors.make(long_mine);
    std::vector<const std::byte*> places;
    for (size_t rank = 0; rank < ranks; ++rank)
      places.push_back(whole.part(rank * count, count).data);
    group.reduce_scatter(places, out, Reduction::sum, kCall);
    const auto long_sum = sum_of(n, count * ranks, salt);
    EXPECT_EQ(values_of(out),
              std::vector<float>(long_sum.begin() + static_cast<long>(my * count),
                                 long_sum.begin() + static_cast<long>((my + 1) * count)));

    // All-gather in place: what is sent is a part of what is received.
    const Buffer all = tensors.make(std::vector<float>(count * ranks));
    std::copy(mine.begin(), mine.end(), reinterpret_cast<float*>(all.part(my * count, count).data));
    Parts parts;
    for (size_t rank = 0; rank < ranks; ++rank) {
      parts.to.push_back(all.part(my * count, count).span());
      parts.from.push_back(all.part(rank * count, count).span());
    }
    group.exchange(parts, count, kCall);
    for (int rank = 0; rank < n; ++rank)
      EXPECT_EQ(values_of(all.part(static_cast<size_t>(rank) * count, count)),
                pattern<float>(rank, count, salt));

    // Parts of all sizes, some empty: rank r sends q + r % 3 times count / 2 to rank q.
    const auto part_count = [&](int from, int to) {
      return (static_cast<size_t>(from + to) % 3) * (count / 2);
    };
    Parts uneven;
    std::vector<Buffer> got;
    for (int rank = 0; rank < n; ++rank) {
      uneven.to.push_back(tensors.make(pattern<float>(me, part_count(me, rank), salt)).span());
      got.push_back(tensors.make(std::vector<float>(part_count(rank, me))));
      uneven.from.push_back(got.back().span());
    }
    group.exchange(uneven, 0, kCall);
    for (int rank = 0; rank < n; ++rank)
      EXPECT_EQ(values_of(got[static_cast<size_t>(rank)]),
                pattern<float>(rank, part_count(rank, me), salt));
    group.barrier(kCall);
  }
}

TEST(HostCollectives, GiveEveryRankItsResultWhereverTheTensorsAre) {
  for (const int ranks : {1, 2, 3})
    for (const Memory memory : {Memory::shared, Memory::own, Memory::mixed})
      run_on_host(ranks, [&](Transport& t) {
        Tensors tensors(t.rank(), memory);
        HostCollectives group(t, memory == Memory::own ? nullptr : &tensors.arena, kCall);
        check_all(group, t, tensors);
        group.barrier(kCall);
      });
}

TEST(MessageCollectives, GiveTheSameResults) {
  run_on_host(3, [&](Transport& t) {
    Tensors tensors(t.rank(), Memory::own);
    MessageCollectives group(t, {.shared_memory = false, .cost_model = CostModel()});
    check_all(group, t, tensors);
  });
}

TEST(HostCollectives, ReduceEveryTypeAsThePlainLoopsDo) {
  run_on_host(2, [](Transport& t) {
    Tensors tensors(t.rank(), Memory::shared);
    HostCollectives group(t, &tensors.arena, kCall);
    for (const DType dtype : {DType::i32, DType::i16, DType::i8, DType::uint8, DType::boolean})
      for (const Reduction reduction :
           {Reduction::sum, Reduction::product, Reduction::max, Reduction::bit_xor}) {
        constexpr size_t kCount = 10'007;
        const Buffer buffer(tensors.make(kCount * 8), kCount, dtype);
        for (size_t i = 0; i < buffer.bytes(); ++i)
          buffer.data[i] = std::byte(dtype == DType::boolean ? (i + size_t(t.rank())) % 2 : i % 3);
        const auto first = static_cast<int>(buffer.data[0]);
        group.reduce(buffer, buffer, reduction, {}, kCall);
        if (dtype == DType::boolean) {
          const bool both = reduction == Reduction::product;
          EXPECT_EQ(static_cast<int>(buffer.data[0]), both ? 0 : 1);
        } else if (reduction == Reduction::max) {
          EXPECT_EQ(static_cast<int>(buffer.data[0]), first);
        } else if (reduction == Reduction::bit_xor) {
          EXPECT_EQ(static_cast<int>(buffer.data[1]), 0);
        }
      }
    EXPECT_THROW(
        {
          float value = 0;
          const Buffer buffer(std::span(&value, 1));
          group.reduce(buffer, buffer, Reduction::bit_and, {}, kCall);
        },
        Error);
  });
}

TEST(HostCollectives, NameBothRanksWhenTheirSizesDiffer) {
  run_on_host(2, [](Transport& t) {
    Tensors tensors(t.rank(), Memory::shared);
    HostCollectives group(t, &tensors.arena, kCall);
    const Buffer buffer = tensors.make(std::vector<float>(t.rank() == 0 ? 10'000 : 20'000));
    try {
      group.reduce(buffer, buffer, Reduction::sum, {}, {.operation = "all_reduce"});
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_THAT(error.message, HasSubstr("rank 0 (host here) called allreduce of 10000 f32"));
      EXPECT_THAT(error.message, HasSubstr("rank 1 (host here) called allreduce of 20000 f32"));
    }
  });
}

void expect_own_size_is_checked(GroupCollectives& group, Transport& t) {
  std::vector<std::byte> sent(100), place(10);
  Parts parts;
  parts.to.resize(static_cast<size_t>(t.size()));
  parts.from.resize(static_cast<size_t>(t.size()));
  parts.to[static_cast<size_t>(t.rank())] = sent;
  parts.from[static_cast<size_t>(t.rank())] = place;
  try {
    group.exchange(parts, 0, kCall);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.message, HasSubstr("expected 10 bytes"));
    EXPECT_THAT(error.message, HasSubstr("100 bytes arrived"));
  }
}

TEST(HostCollectives, CheckTheSizeOfWhatARankKeeps) {
  for (const int ranks : {1, 2})
    run_on_host(ranks, [](Transport& t) {
      HostCollectives group(t, nullptr, kCall);
      expect_own_size_is_checked(group, t);
    });
}

TEST(MessageCollectives, CheckTheSizeOfWhatARankKeeps) {
  run_on_host(2, [](Transport& t) {
    MessageCollectives group(t, {.shared_memory = false, .cost_model = CostModel()});
    expect_own_size_is_checked(group, t);
  });
}

TEST(HostCollectives, OfALateRankDoNotReachTheOthersThatGaveUp) {
  constexpr size_t kCount = 100'000;
  run_on_host(2, [](Transport& t) {
    Tensors tensors(t.rank(), Memory::shared);
    HostCollectives group(t, &tensors.arena, kCall);
    const Buffer buffer = tensors.make(std::vector<float>(kCount, 1));
    Call call = kCall;
    call.timeout_seconds = 0.2;
    if (t.rank() == 0) {
      EXPECT_THROW(group.reduce(buffer, buffer, Reduction::sum, {}, call), Timeout);
      std::memset(buffer.data, 0, buffer.bytes());
    }
    Request request = t.rank() == 0 ? t.send(1, {}, 5) : t.receive(0, {}, 5);
    t.wait(request, kCall);
    if (t.rank() == 1) {
      EXPECT_THROW(group.reduce(buffer, buffer, Reduction::sum, {}, call), Timeout);
    }
    Request last = t.rank() == 1 ? t.send(0, {}, 6) : t.receive(1, {}, 6);
    t.wait(last, kCall);
    if (t.rank() == 0) {
      EXPECT_EQ(values_of(buffer), std::vector<float>(kCount, 0));
    }
  });
}

TEST(HostCollectives, NameTheRankThatDoesNotCome) {
  run_on_host(2, [](Transport& t) {
    HostCollectives group(t, nullptr, kCall);
    group.barrier(kCall);
    float value = 1;
    const Buffer buffer(std::span(&value, 1));
    if (t.rank() == 0) {
      try {
        group.reduce(buffer, buffer, Reduction::sum, {},
                     {.operation = "all_reduce", .timeout_seconds = 0.2});
        ADD_FAILURE();
      } catch (const Timeout& error) {
        EXPECT_EQ(error.rank, 1);
        EXPECT_THAT(error.message, HasSubstr("all_reduce"));
      }
      Request request = t.send(1, {}, 5);
      t.wait(request, kCall);
    } else {
      Request request = t.receive(0, {}, 5);
      t.wait(request, kCall);
    }
  });
}

}  // namespace
}  // namespace renkei::comm
