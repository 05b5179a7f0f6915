#include "capture/open_network.h"

#include <gtest/gtest.h>

#include "program/builder.h"

namespace renkei::capture {
namespace {

using program::Builder;
using program::DType;

// The first output is one number for all samples, the second has a row for each.
OpenNetwork network_with(bool computes_loss) {
  Builder builder("network");
  const program::ValueId x = builder.input("x", DType::f32, {builder.batch(), 4});
  builder.output("sum", builder.sum(x));
  builder.output("rows", builder.relu(x));
  return {.network = {.training = builder.finish(), .computes_loss = computes_loss}};
}

TEST(PredictionOf, TakesNoOtherOutputForTheMainOne) {
  const OpenNetwork open = network_with(false);
  const program::Program all = prediction_of(open);
  ASSERT_EQ(all.outputs.size(), 1u);
  EXPECT_EQ(all.outputs[0].name, "rows");
  EXPECT_THROW(prediction_of(open, Predicted::main), Error);
}

TEST(PredictionOf, LeavesOutTheLossThatANetworkComputes) {
  const program::Program main = prediction_of(network_with(true), Predicted::main);
  ASSERT_EQ(main.outputs.size(), 1u);
  EXPECT_EQ(main.outputs[0].name, "rows");
}

}  // namespace
}  // namespace renkei::capture
