// What power failures, full disks and bad ones leave behind is never taken for a checkpoint.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/base/temporary_directory.h"
#include "tests/checkpoint/sample.h"

namespace renkei::checkpoint {
namespace {

namespace fs = std::filesystem;

class Damage : public testing::Test {
 protected:
  Damage() {
    write_sample(root_.path(), 10, 2);
    newest_ = write_sample(root_.path(), 20, 2);
    for (const auto& entry : fs::directory_iterator(newest_))
      content_[entry.path()] = read_file(entry.path());
  }

  void replace(const fs::path& file, std::string_view content) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << content;
  }
  void expect_previous(const std::string& what) {
    std::vector<std::string> told;
    EXPECT_EQ(newest_for(2, root_.path(), &told), 10) << what;
    EXPECT_EQ(told.size(), 1u) << what;
  }

  test::TemporaryDirectory root_;
  fs::path newest_;
  std::map<fs::path, std::string> content_;
};

TEST_F(Damage, CutAtEveryFiftiethThePreviousOneIsTaken) {
  for (const auto& [file, content] : content_) {
    for (size_t part = 0; part < 50; ++part) {
      replace(file, std::string_view(content).substr(0, content.size() * part / 50));
      expect_previous(fmt::format("{} cut at {}/50", file.string(), part));
    }
    replace(file, content);
  }
  EXPECT_EQ(newest_for(2, root_.path()), 20);
}

TEST_F(Damage, WithOneBitFlippedThePreviousOneIsTaken) {
  for (const auto& [file, content] : content_) {
    for (size_t at = 0; at < content.size(); at += 1 + content.size() / 40) {
      std::string flipped = content;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << (at % 8)));
      replace(file, flipped);
      expect_previous(fmt::format("{} flipped at byte {}", file.string(), at));
    }
    replace(file, content);
  }
}

TEST_F(Damage, WithAFileMissingOrLongerThePreviousOneIsTaken) {
  for (const auto& [file, content] : content_) {
    replace(file, content + "x");
    expect_previous(file.string() + " is longer");
    fs::remove(file);
    std::vector<std::string> told;
    EXPECT_EQ(newest_for(2, root_.path(), &told), 10) << file;
    // Without a manifest it was never one, and nothing need be said.
    EXPECT_EQ(told.size(), file.filename() == "manifest.json" ? 0u : 1u) << file;
    replace(file, content);
  }
}

TEST_F(Damage, WithNoneWholeThereIsNone) {
  for (const char* step : {"step-00000010", "step-00000020"})
    fs::remove(root_ / (std::string(step) + "/rank-1.safetensors"));
  std::vector<std::string> told;
  EXPECT_EQ(newest_for(2, root_.path(), &told), -1);
  EXPECT_EQ(told.size(), 2u);
}

}  // namespace
}  // namespace renkei::checkpoint
