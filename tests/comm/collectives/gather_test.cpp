#include "comm/collectives/gather.h"

#include <gtest/gtest.h>

#include "comm/transport/thread_transport.h"

namespace renkei::comm {
namespace {

TEST(GatherTexts, BringsAllTextsToTheFirstRankInOrder) {
  run_as_threads(4, [](Transport& transport) {
    // Rank r has r letters: none for rank 0.
    const std::string mine(static_cast<size_t>(transport.rank()),
                           static_cast<char>('a' + transport.rank()));
    const auto texts = gather_texts(transport, mine, {});
    if (transport.rank() == 0)
      EXPECT_EQ(texts, (std::vector<std::string>{"", "b", "cc", "ddd"}));
    else
      EXPECT_TRUE(texts.empty());
  });
}

}  // namespace
}  // namespace renkei::comm
