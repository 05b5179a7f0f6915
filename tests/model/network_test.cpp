#include "model/network.h"

#include <gtest/gtest.h>

namespace renkei::model {
namespace {

Settings settings_for(const std::string& name) {
  Settings settings;
  declare_settings(settings);
  settings.set("model.name", name, "test");
  return settings;
}

TEST(Mlp, OfTheTutorialHas2626560Parameters) {
  const auto network = make_network(settings_for("mlp"), 1);
  EXPECT_EQ(count_parameters(*network), 2'626'560);
}

TEST(Networks, TakeTheirInputShapeAndGiveTheirOutputs) {
  for (const NetworkDescription& description : networks()) {
    const auto network = make_network(settings_for(description.name), 1);
    std::vector<int64_t> shape = network->input_shape();
    shape.insert(shape.begin(), 3);
    const torch::Tensor output = network->forward(torch::zeros(shape));
    EXPECT_EQ(output.sizes(), (std::vector<int64_t>{3, network->outputs()})) << description.name;
  }
}

TEST(Networks, StartFromTheSeedAlone) {
  for (const NetworkDescription& description : networks()) {
    const auto a = make_network(settings_for(description.name), 1)->parameters();
    const auto b = make_network(settings_for(description.name), 1)->parameters();
    const auto c = make_network(settings_for(description.name), 2)->parameters();
    EXPECT_TRUE(torch::equal(a[0], b[0]));
    EXPECT_FALSE(torch::equal(a[0], c[0]));
  }
}

}  // namespace
}  // namespace renkei::model
