#include "networks/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "networks/network.h"
#include "tests/base/thrown_error.h"

namespace renkei::networks {
namespace {

using test::thrown_error;
using testing::HasSubstr;

Settings declared() {
  Settings settings;
  declare_settings(settings);
  return settings;
}

TEST(NetworkSettings, RefuseImagesThatANetworkCannotTake) {
  for (const auto& [name, size] : std::map<std::string, std::string>{
           {"alexnet", "62"}, {"vgg16", "31"}, {"inception_v3", "74"}, {"lenet", "33"}}) {
    Settings settings = declared();
    settings.set("model.name", name, "test");
    settings.set("model.image_size", size, "test");
    const Error error = thrown_error([&] { make_network(settings); });
    EXPECT_EQ(error.code, ErrorCode::usage);
    EXPECT_THAT(error.message, HasSubstr("model.image_size is " + size));
  }
}

TEST(NetworkSettings, AcceptTheSmallestImages) {
  for (const auto& [name, size] : std::map<std::string, std::string>{
           {"alexnet", "63"}, {"vgg16", "32"}, {"inception_v3", "75"}, {"resnet18", "1"}}) {
    Settings settings = declared();
    settings.set("model.name", name, "test");
    settings.set("model.image_size", size, "test");
    EXPECT_NO_THROW(make_network(settings)) << name;
  }
}

TEST(NetworkSettings, AskForFullImagesForTheAuxiliaryHead) {
  Settings settings = declared();
  settings.set("model.name", "inception_v3", "test");
  settings.set("model.auxiliary", "true", "test");
  settings.set("model.image_size", "298", "test");
  EXPECT_THAT(thrown_error([&] { make_network(settings); }).message, HasSubstr("299"));
}

TEST(NetworkSettings, RefuseHeadsThatDoNotDivideTheWidth) {
  Settings settings = declared();
  settings.set("model.name", "gpt", "test");
  settings.set("model.hidden", "30", "test");
  settings.set("model.heads", "4", "test");
  EXPECT_THAT(thrown_error([&] { make_network(settings); }).message, HasSubstr("4 heads"));
}

TEST(NetworkSettings, NameFilesByTheirStem) {
  Settings settings = declared();
  settings.set("model.name", "some/where/vit_b.pt2", "test");
  EXPECT_EQ(model_name(settings), "vit_b");
  EXPECT_TRUE(is_model_file(settings.text("model.name")));
  EXPECT_THROW(make_network(settings), Error);
  EXPECT_THROW(settings.set("model.name", "resnet51", "test"), Error);
}

}  // namespace
}  // namespace renkei::networks
