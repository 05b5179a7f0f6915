#include "model/network.h"

#include <gtest/gtest.h>

#include <map>

#include "base/error.h"

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

// With torchvision's 1000 classes; its documentation states the same counts.
TEST(Networks, HaveTheParametersOfThePublishedOnes) {
  const std::map<std::string, int64_t> published{
      {"alexnet", 61'100'840},  {"vgg16_bn", 138'365'992}, {"resnet18", 11'689'512},
      {"resnet50", 25'557'032}, {"resnet152", 60'192'808}, {"inception_v3", 23'834'568}};
  for (const auto& [name, count] : published)
    EXPECT_EQ(count_parameters(*make_network(settings_for(name), 1)), count) << name;
  Settings settings = settings_for("inception_v3");
  settings.set("model.auxiliary", "true", "test");
  EXPECT_EQ(count_parameters(*make_network(settings, 1)), 27'161'264);
}

// One of each family, small.
std::vector<Settings> one_of_each() {
  std::vector<Settings> list{settings_for("mlp"), settings_for("lenet")};
  for (const auto& [name, size] : std::map<std::string, std::string>{
           {"alexnet", "63"}, {"vgg11_bn", "32"}, {"resnet18", "40"}, {"inception_v3", "75"}}) {
    list.push_back(settings_for(name));
    list.back().set("model.image_size", size, "test");
    list.back().set("model.classes", "5", "test");
  }
  return list;
}

TEST(Networks, TakeTheirInputShapeAndGiveTheirOutputs) {
  for (const Settings& settings : one_of_each()) {
    const auto network = make_network(settings, 1);
    network->eval();
    std::vector<int64_t> shape = network->input_shape();
    shape.insert(shape.begin(), 3);
    const torch::Tensor output = network->forward(torch::zeros(shape));
    EXPECT_EQ(output.sizes(), (std::vector<int64_t>{3, network->outputs()}))
        << settings.text("model.name");
  }
}

TEST(Networks, StartFromTheSeedAlone) {
  for (const char* name : {"mlp", "lenet", "resnet18"}) {
    const Settings settings = settings_for(name);
    const auto a = make_network(settings, 1)->parameters();
    const auto b = make_network(settings, 1)->parameters();
    const auto c = make_network(settings, 2)->parameters();
    EXPECT_TRUE(torch::equal(a[0], b[0]));
    EXPECT_FALSE(torch::equal(a[0], c[0]));
  }
}

TEST(Networks, RefuseImagesThatTheyCannotTake) {
  for (const auto& [name, size] : std::map<std::string, std::string>{
           {"alexnet", "62"}, {"vgg16", "31"}, {"inception_v3", "74"}, {"lenet", "33"}}) {
    Settings settings = settings_for(name);
    settings.set("model.image_size", size, "test");
    EXPECT_THROW(make_network(settings, 1), Error) << name;
  }
}

}  // namespace
}  // namespace renkei::model
