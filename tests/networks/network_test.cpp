#include "networks/network.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "networks/settings.h"

namespace renkei::networks {
namespace {

Settings network_settings(const std::string& name,
                          const std::map<std::string, std::string>& more = {}) {
  Settings settings;
  declare_settings(settings);
  settings.set("model.name", name, "test");
  for (const auto& [key, value] : more) settings.set("model." + key, value, "test");
  return settings;
}

int64_t parameters_of(const Settings& settings) {
  return count_parameters(make_network(settings).training);
}

// With torchvision's 1000 classes; its documentation states the same counts.
TEST(Networks, HaveTheParametersOfThePublishedOnes) {
  const std::map<std::string, int64_t> published{
      {"mlp", 2'626'560},       {"alexnet", 61'100'840},     {"vgg16_bn", 138'365'992},
      {"resnet18", 11'689'512}, {"resnet50", 25'557'032},    {"resnet152", 60'192'808},
      {"gpt", 123'751'680},     {"inception_v3", 23'834'568}};
  for (const auto& [name, count] : published)
    EXPECT_EQ(parameters_of(network_settings(name)), count) << name;
  EXPECT_EQ(parameters_of(network_settings("inception_v3", {{"auxiliary", "true"}})), 27'161'264);
  // GPT-2 small with its 1024 positions.
  EXPECT_EQ(parameters_of(network_settings("gpt", {{"sequence", "1024"}})), 124'439'808);
}

TEST(Networks, SayWhatTheyTakeAndGive) {
  for (const NetworkDescription& description : networks()) {
    const Network network = make_network(network_settings(description.name));
    const program::Program& program = network.training;
    const auto symbols = program::with_batch(program, 3);
    ASSERT_EQ(program.inputs.size(), 1u);
    EXPECT_EQ(program.inputs[0].name, "input");
    EXPECT_EQ(sizes_of(program.value(program.inputs[0].value), symbols)[0], 3) << program.name;
    const auto output = sizes_of(program.value(program.outputs.at(0).value), symbols);
    EXPECT_EQ(output[0], 3);
    EXPECT_EQ(output[1], network.outputs);
    EXPECT_EQ(program.name, description.name);
    EXPECT_NO_THROW(check(program, description.name));
  }
}

TEST(Networks, HaveValuesWithDifferentNames) {
  const Network network = make_network(network_settings("resnet18"));
  std::set<std::string> names;
  for (const program::Value& value : network.training.values)
    EXPECT_TRUE(names.insert(value.name).second) << value.name;
}

TEST(Networks, TieTheirWeightsOrNot) {
  const std::map<std::string, std::string> small{{"hidden", "16"}, {"vocabulary", "11"}};
  for (const char* name : {"gpt", "bert"}) {
    auto untied = small;
    untied["tied"] = "false";
    EXPECT_EQ(parameters_of(network_settings(name, untied)) -
                  parameters_of(network_settings(name, small)),
              11 * 16);
  }
  const Network network = make_network(network_settings("gpt", small));
  EXPECT_EQ(network.training.state[0].name, "tokens.weight");
  EXPECT_EQ(network.training.state[0].aliases, std::vector<std::string>{"head.weight"});
}

TEST(Networks, CountAuxiliaryHeadsByTheirWeight) {
  EXPECT_EQ(make_network(network_settings("inception_v3")).auxiliary_weight, 0);
  const Network network = make_network(network_settings("inception_v3", {{"auxiliary", "true"}}));
  EXPECT_EQ(network.auxiliary_weight, 0.4);
  EXPECT_EQ(network.training.outputs.size(), 2u);
}

TEST(Networks, SayHowRandomSamplesLook) {
  const RandomSample image = make_network(network_settings("lenet")).random_sample;
  EXPECT_EQ(image.target, RandomTarget::label);
  EXPECT_EQ(image.classes, 10);
  const RandomSample text = make_network(network_settings("bert")).random_sample;
  EXPECT_EQ(text.target, RandomTarget::masked_token);
  EXPECT_EQ(text.classes, 30522);
  EXPECT_EQ(text.target_size, 128);
  EXPECT_EQ(make_network(network_settings("mlp")).random_sample.target_size, 512);
}

}  // namespace
}  // namespace renkei::networks
