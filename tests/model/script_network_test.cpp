#include "model/script_network.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace renkei::model {
namespace {

TEST(InputShapes, AreParsed) {
  const auto inputs = parse_input_shapes("3x24x32,16<100,5");
  ASSERT_EQ(inputs.size(), 3u);
  EXPECT_EQ(inputs[0].shape, (std::vector<int64_t>{3, 24, 32}));
  EXPECT_EQ(inputs[0].below, 0);
  EXPECT_EQ(inputs[1].shape, (std::vector<int64_t>{16}));
  EXPECT_EQ(inputs[1].below, 100);
  EXPECT_EQ(inputs[2].shape, (std::vector<int64_t>{5}));
}

TEST(InputShapes, ThatMakeNoSenseAreRefused) {
  for (const char* text : {"", "3x", "3xa", "0x3", "5<", "-1", "3,,4"})
    EXPECT_THROW(parse_input_shapes(text), Error) << text;
}

}  // namespace
}  // namespace renkei::model
