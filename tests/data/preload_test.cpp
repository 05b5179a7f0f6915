#include "data/preload.h"

#include <fstream>

#include "base/file.h"
#include "data/image/jpeg.h"
#include "data/source/open_source.h"
#include "tests/data/expect_error.h"
#include "tests/data/field_values.h"
#include "tests/data/temporary_directory.h"

namespace renkei::data {
namespace {

namespace fs = std::filesystem;

Image plain(int width, int height, uint8_t value) {
  return {width, height, 3, std::vector<uint8_t>(static_cast<size_t>(width * height * 3), value)};
}

void add(const fs::path& path, std::string_view content) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

void add_image(const fs::path& path, uint8_t value, int width = 8, int height = 8) {
  add(path, encode_jpeg(plain(width, height, value), 95));
}

MemoryImages load(const fs::path& root, const PreloadOptions& options = {}) {
  return preload_images(*open_source(open_storage(root.string()), {.path = root.string()}),
                        options);
}

TEST(Preload, NumbersClassesAndSamplesByName) {
  const TemporaryDirectory root;
  add_image(root.path() / "zebra" / "1.jpg", 30);
  add_image(root.path() / "ape" / "b.JPEG", 20);
  add_image(root.path() / "ape" / "a.jpg", 10);
  fs::create_directories(root.path() / "newt");  // no images, but it keeps its number
  add(root.path() / "ape" / "notes.txt", "not an image");
  add(root.path() / ".cache" / "x.jpg", "hidden");
  add(root.path() / "dataset.json", "{}");

  const MemoryImages data = load(root.path(), {.height = 8, .width = 8});
  EXPECT_THAT(data.class_names(), testing::ElementsAre("ape", "newt", "zebra"));
  ASSERT_EQ(data.count(), 3);
  for (const auto& [sample, label, value] : {std::tuple{0, 0, 10}, {1, 0, 20}, {2, 2, 30}}) {
    EXPECT_EQ(label_of(data, sample), label);
    for (const float number : input_of(data, sample))
      EXPECT_NEAR(number, (static_cast<float>(value) / 255 - 0.5f) / 0.25f, 0.05f);
  }
}

TEST(Preload, ResizesWhatHasAnotherSize) {
  const TemporaryDirectory root;
  add_image(root.path() / "a" / "wide.jpg", 10, 40, 10);
  add_image(root.path() / "a" / "tiny.jpg", 10, 3, 3);
  const MemoryImages data = load(root.path(), {.height = 6, .width = 12});
  EXPECT_EQ(data.fields()[0].shape, (std::vector<int64_t>{3, 6, 12}));
  EXPECT_EQ(data.count(), 2);
}

TEST(Preload, ReportsProgress) {
  const TemporaryDirectory root;
  for (int i = 0; i < 5; ++i) add_image(root.path() / "a" / fmt::format("{}.jpg", i), 10);
  int64_t last = 0;
  load(root.path(), {.threads = 3, .progress = [&](int64_t done, int64_t) { last = done; }});
  EXPECT_EQ(last, 5);
}

TEST(Preload, AFolderWithoutClassesIsADataError) {
  const TemporaryDirectory root;
  add_image(root.path() / "1.jpg", 30);
  expect_error(ErrorCode::data, "has no class folders", [&] { load(root.path()); });
}

TEST(Preload, AFolderTooHighIsADataError) {
  const TemporaryDirectory root;
  add_image(root.path() / "pets" / "cat" / "1.jpg", 30);
  expect_error(ErrorCode::data, "hold no .jpg, .jpeg or .png files", [&] { load(root.path()); });
}

TEST(Preload, NamesTheFirstDamagedFile) {
  const TemporaryDirectory root;
  for (int i = 0; i < 40; ++i) add_image(root.path() / "a" / fmt::format("{:02}.jpg", i), 10);
  for (const char* name : {"07.jpg", "08.jpg", "30.jpg"}) {
    const std::string bytes = read_file(root.path() / "a" / name);
    add(root.path() / "a" / name, std::string_view(bytes).substr(0, bytes.size() / 2));
  }
  for (int repeat = 0; repeat < 5; ++repeat)
    expect_error(ErrorCode::data, "/a/07.jpg is not a readable JPEG image",
                 [&] { load(root.path(), {.threads = 4}); });
}

TEST(Preload, RefusesImagesWithoutPixels) {
  const TemporaryDirectory root;
  add_image(root.path() / "a" / "1.jpg", 10);
  expect_error(ErrorCode::usage, "0 x 32 pixels", [&] { load(root.path(), {.width = 0}); });
}

}  // namespace
}  // namespace renkei::data
