#include "run/memory.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace renkei::run {
namespace {

class Memory : public testing::Test {
 protected:
  Memory() { install_memory_pools(); }
};

TEST_F(Memory, CountsTheBytesOfLiveTensors) {
  const MemoryUse before = memory_use();
  reset_peak_memory();
  {
    const torch::Tensor a = torch::empty({1000, 1000});
    EXPECT_EQ(memory_use().live - before.live, 4'000'000);
    const torch::Tensor b = torch::empty({10});
    EXPECT_EQ(memory_use().live - before.live, 4'000'040);
  }
  EXPECT_EQ(memory_use().live, before.live);
  EXPECT_EQ(memory_use().peak - before.live, 4'000'040);
}

TEST_F(Memory, GivesAFreedPieceToTheNextTensorOfItsSize) {
  void* first = torch::empty({300'000}).data_ptr();
  const int64_t held = memory_use().held;
  const torch::Tensor next = torch::empty({299'000});
  EXPECT_EQ(next.data_ptr(), first);
  EXPECT_EQ(memory_use().held, held);
}

TEST_F(Memory, GivesBackWhatIsNotUsed) {
  release_unused_memory();
  const int64_t held = memory_use().held;
  torch::empty({3'000'000});
  EXPECT_GE(memory_use().held, held + 12'000'000);
  release_unused_memory();
  EXPECT_EQ(memory_use().held, held);
}

TEST_F(Memory, DoesNotCountOrLimitWhatIsTheHosts) {
  const int64_t live = memory_use().live;
  limit_memory(live + 1000);
  std::optional<torch::Tensor> of_host;
  {
    const HostMemory host;
    of_host = torch::empty({10'000});
  }
  EXPECT_EQ(memory_use().live, live);
  EXPECT_ANY_THROW(torch::empty({10'000}));
  EXPECT_NO_THROW(torch::empty({200}));
  of_host.reset();
  EXPECT_EQ(memory_use().live, live);
  limit_memory(0);
  last_refusal();
}

TEST_F(Memory, StartsOnCacheLinesAndCanBeWritten) {
  for (const int64_t count : {1, 17, 20'000, 600'000, 1'000'001}) {
    const torch::Tensor tensor = torch::full({count}, 3.0f);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data_ptr()) % 64, 0u);
    EXPECT_EQ(tensor.sum().item<float>(), 3.0f * static_cast<float>(count));
  }
  EXPECT_EQ(torch::empty({0}).numel(), 0);
}

}  // namespace
}  // namespace renkei::run
