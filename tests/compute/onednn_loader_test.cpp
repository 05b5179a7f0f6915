#include "compute/onednn/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"

namespace renkei::compute::onednn {
namespace {

std::string message_of(const std::vector<std::filesystem::path>& places) {
  try {
    open_module(places);
  } catch (const Error& error) {
    EXPECT_FALSE(error.hint.empty());
    return error.message;
  }
  ADD_FAILURE() << "opened";
  return "";
}

TEST(OneDnnModule, IsFoundByThisProgram) {
  EXPECT_NO_THROW(module());
  EXPECT_EQ(&module(), &module());
}

TEST(OneDnnModule, IsAnErrorWhereItIsNowhere) {
  EXPECT_THAT(message_of({"/nonexistent/renkei_onednn.so"}),
              testing::HasSubstr("in none of the 1"));
}

TEST(OneDnnModule, IsAnErrorWhereItCannotBeLoaded) {
  const std::filesystem::path file =
      std::filesystem::path(testing::TempDir()) / "renkei_broken_module.so";
  std::ofstream(file) << "not a library";
  EXPECT_THAT(message_of({file}), testing::HasSubstr("cannot be loaded: " + file.string()));
  std::filesystem::remove(file);
}

TEST(OneDnnModule, IsLookedForBesideTheProgramAndWhereMakeInstallPutsIt) {
  const auto places = module_places();
  const auto directory = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  ASSERT_GE(places.size(), 3u);
  EXPECT_EQ(places[0], directory / "renkei_onednn.so");
  EXPECT_EQ(places[1], directory.parent_path() / "lib/renkei/renkei_onednn.so");
}

}  // namespace
}  // namespace renkei::compute::onednn
