#include "shard/choice.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace renkei::shard {
namespace {

TEST(Pins, NamesMayHaveStars) {
  const Pins pins = parse_pins("mlp.*.weight:1=model, head.bias=none");
  ASSERT_EQ(pins.size(), 2u);
  const Pin* found = find_pin(pins, {.name = "mlp.3.up.weight"});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->layout, split(1));
  EXPECT_EQ(find_pin(pins, {.name = "mlp.3.up.bias"}), nullptr);
  EXPECT_EQ(find_pin(pins, {.name = "head.bias"})->layout, kWhole);
  EXPECT_TRUE(find_pin(pins, {.name = "x", .aliases = {"mlp.tied.weight"}}));
}

TEST(Pins, RefuseWhatSaysNothing) {
  for (const char* text :
       {"weight", "weight:1", "weight=model", "weight:x=model", "=none", "weight:1=pipeline"})
    EXPECT_THROW(parse_pins(text), Error) << text;
  EXPECT_TRUE(parse_pins("").empty());
}

int halves(const std::vector<Layout>& available, const Layout& wanted) {
  int sum = 0;
  for (const Step& step : way(available, wanted))
    sum += halves_of(step).forward + halves_of(step).backward;
  return sum;
}

TEST(Ways, TakeTheLeastTraffic) {
  EXPECT_TRUE(way(std::vector{kWhole, kCopied}, kCopied).empty());
  EXPECT_EQ(halves({kWhole}, kCopied), 2);     // an allreduce back
  EXPECT_EQ(halves({kPartial}, kWhole), 2);    // an allreduce forward
  EXPECT_EQ(halves({kPartial}, split(0)), 2);  // reduce-scatter, all-gather back
  EXPECT_EQ(halves({split(0)}, kCopied), 2);   // all-gather, reduce-scatter back
  EXPECT_EQ(halves({split(0)}, split(1)), 2);  // by way of the whole
  EXPECT_EQ(halves({kPartial}, kCopied), 4);
  EXPECT_EQ(halves({split(0), kCopied}, kWhole), 0);  // it is there already
  EXPECT_EQ(halves({kCopied}, split(1)), 0);
}

}  // namespace
}  // namespace renkei::shard
