#include "comm/shared_memory/arena.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>

namespace renkei::comm {
namespace {

constexpr ArenaOptions kSmall{.bytes = 64 << 20, .skew_bytes = 128};

std::byte* allocate(Arena& arena, size_t bytes, int fill) {
  auto* const data = static_cast<std::byte*>(arena.allocate(bytes));
  std::memset(data, fill, bytes);
  return data;
}

TEST(Arena, LetsOthersSeeABlockWithoutMovingIt) {
  Arena arena(kSmall);
  std::byte* const block = allocate(arena, 100'000, 7);
  const auto place = arena.share(block, 100'000);
  ASSERT_TRUE(place);
  const MemoryMap other(MemoryFile::open(arena.handle()));
  EXPECT_EQ(other.data()[*place], std::byte{7});
  EXPECT_EQ(other.data()[*place + 99'999], std::byte{7});
  other.data()[*place + 5] = std::byte{9};
  EXPECT_EQ(block[5], std::byte{9});
  EXPECT_EQ(arena.share(block, 100'000), place);
}

TEST(Arena, SharesAPartOnlyIfItsPagesHoldNothingElse) {
  Arena arena(kSmall);
  std::byte* const block = allocate(arena, 100'000, 1);
  EXPECT_FALSE(arena.share(block + 5000, 10'000));
  EXPECT_EQ(arena.shared_bytes(), 0u);
  ASSERT_TRUE(arena.share(block, 100'000));
  EXPECT_TRUE(arena.share(block + 5000, 10'000));
  int outside = 0;
  EXPECT_FALSE(arena.share(&outside, sizeof outside));
  EXPECT_FALSE(arena.share(block, 100'001));
}

TEST(Arena, WithdrawsWhatOthersMayStillWriteTo) {
  Arena arena(kSmall);
  std::byte* const block = allocate(arena, 100'000, 7);
  std::byte* const other_block = allocate(arena, 100'000, 8);
  const auto place = arena.share(block, 100'000), other_place = arena.share(other_block, 100'000);
  ASSERT_TRUE(place && other_place);
  const MemoryMap other(MemoryFile::open(arena.handle()));
  arena.withdraw(block, 100'000);
  std::memset(other.data() + *place, 9, 100'000);
  for (size_t i = 0; i < 100'000; ++i) ASSERT_EQ(block[i], std::byte{7}) << i;
  other.data()[*other_place] = std::byte{9};
  EXPECT_EQ(other_block[0], std::byte{9});
  // Of a part, only whole pages.
  arena.withdraw(other_block + 5000, 10'000);
  std::memset(other.data() + *other_place, 5, 100'000);
  EXPECT_EQ(other_block[5000], std::byte{5});
  EXPECT_EQ(other_block[10'000], std::byte{8});
  EXPECT_EQ(other_block[20'000], std::byte{5});
  // It can be shared again, with what it has.
  EXPECT_EQ(arena.share(block, 100'000), place);
  EXPECT_EQ(other.data()[*place], std::byte{7});
  int outside = 0;
  arena.withdraw(&outside, sizeof outside);
}

TEST(Arena, KeepsBlocksApartAndUsesFreedOnesAgain) {
  Arena arena(kSmall);
  std::vector<std::byte*> blocks;
  for (int i = 0; i < 20; ++i) blocks.push_back(allocate(arena, 1000 * size_t(i + 1), i));
  for (int i = 0; i < 20; i += 2) arena.release(blocks[size_t(i)]);
  for (int i = 0; i < 20; i += 2) blocks[size_t(i)] = allocate(arena, 1000 * size_t(i + 1), i);
  for (int i = 0; i < 20; ++i)
    for (size_t k = 0; k < 1000 * size_t(i + 1); ++k) ASSERT_EQ(blocks[size_t(i)][k], std::byte(i));
  for (std::byte* block : blocks) arena.release(block);
  // All of it is one piece again.
  void* const whole = arena.allocate((64 << 20) - 8192);
  EXPECT_NE(whole, nullptr);
  EXPECT_EQ(arena.allocate(1 << 20), nullptr);
  arena.release(whole);
}

// What the child finds: 0 when the block is as it was, and stays so, and the child's own writes
// reach nobody.
int look_in_child(Arena& arena, std::byte* block, size_t bytes, int value) {
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the parent writes meanwhile
  for (size_t i = 0; i < bytes; ++i)
    if (block[i] != std::byte(value)) return 1;
  std::memset(block, 99, bytes);
  if (arena.share(block, bytes)) return 2;
  void* const more = arena.allocate(1 << 20);
  if (!more) return 3;
  std::memset(more, 1, 1 << 20);
  arena.release(more);
  return 0;
}

void fork_and_compare(bool held) {
  Arena arena(kSmall);
  constexpr size_t kBytes = 300'000;
  std::byte* const block = allocate(arena, kBytes, 5);
  ASSERT_TRUE(arena.share(block, kBytes));
  std::optional<Arena::Hold> hold;
  if (held) hold = arena.hold();
  const pid_t child = fork();
  if (child == 0) _exit(look_in_child(arena, block, kBytes, 5));
  std::memset(block, 6, kBytes);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(block[17], std::byte{6});
  hold.reset();
  const auto place = arena.share(block, kBytes);
  ASSERT_TRUE(place);
  EXPECT_EQ(MemoryMap(MemoryFile::open(arena.handle())).data()[*place + 17], std::byte{6});
}

TEST(Arena, IsPrivateMemoryToAForkedChild) {
  fork_and_compare(/*held=*/false);
}

TEST(Arena, IsPrivateMemoryToAChildThatWasForkedDuringACollective) {
  fork_and_compare(/*held=*/true);
}

}  // namespace
}  // namespace renkei::comm
