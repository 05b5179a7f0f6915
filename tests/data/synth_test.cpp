#include "data/synth.h"

#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "data/image/jpeg.h"
#include "data/preload.h"
#include "data/shapes.h"
#include "data/source/open_source.h"
#include "tests/data/expect_error.h"
#include "tests/data/field_values.h"
#include "tests/data/temporary_directory.h"

namespace renkei::data {
namespace {

namespace fs = std::filesystem;

// Relative path -> content, of all files below.
std::map<std::string, std::string> contents(const fs::path& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory))
    if (entry.is_regular_file())
      files[fs::relative(entry.path(), directory).string()] = read_file(entry.path());
  return files;
}

// While this lives, no file can grow beyond so many bytes: writes really fail, as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST(WriteSynth, WritesTheSameBytesWithAnyNumberOfThreads) {
  const TemporaryDirectory temporary;
  SynthOptions options{.train_images = 60, .test_images = 25, .size_pixels = 16, .seed = 4};
  options.directory = temporary.path() / "one";
  options.threads = 1;
  write_synth(options);
  options.directory = temporary.path() / "four";
  options.threads = 4;
  write_synth(options);
  const auto files = contents(temporary.path() / "one");
  EXPECT_EQ(files.size(), 60u + 25 + 1);
  EXPECT_EQ(files, contents(temporary.path() / "four"));
}

TEST(WriteSynth, PutsTestImagesAfterTrainingImages) {
  const TemporaryDirectory temporary;
  const fs::path directory = temporary.path() / "shapes";
  write_synth({.directory = directory, .train_images = 20, .test_images = 10, .quality = 90});
  for (const auto& [part, index] : {std::pair{"train", 0}, {"train", 19}, {"test", 20}}) {
    const auto [image, label] = draw_shape(1, index, 32);
    EXPECT_EQ(read_file(directory / part / shape_names()[static_cast<size_t>(label)] /
                        fmt::format("{:06}.jpg", index)),
              encode_jpeg(image, 90));
  }
}

TEST(WriteSynth, CanBeReadAsAnImageFolderWithTheSameLabels) {
  const TemporaryDirectory temporary;
  const fs::path directory = temporary.path() / "shapes";
  write_synth({.directory = directory, .train_images = 50, .test_images = 5});
  const auto load = [&](Part part) {
    return preload_images(
        *open_source(open_storage(directory.string()), {.path = directory.string(), .part = part}),
        {});
  };
  const MemoryImages train = load(Part::train), test = load(Part::held_out);
  EXPECT_EQ(train.class_names(), shape_names());
  EXPECT_EQ(test.class_names(), shape_names());
  ASSERT_EQ(train.count(), 50);
  ASSERT_EQ(test.count(), 5);
  for (int64_t sample = 0; sample < 50; ++sample) {
    const int64_t index = sample / 5 + sample % 5 * 10;  // sorted by class: five images of each
    const auto [image, label] = draw_shape(1, index, 32);
    EXPECT_EQ(label_of(train, sample), label);
    const std::vector<float> input = input_of(train, sample);
    double difference = 0;
    for (size_t i = 0; i < input.size(); ++i)
      difference += std::abs((input[i] * 0.25f + 0.5f) * 255 -
                             static_cast<float>(image.pixels[i % 1024 * 3 + i / 1024]));
    EXPECT_LT(difference / static_cast<double>(input.size()), 8) << "image " << index;
  }
}

TEST(WriteSynth, DescribesTheDataSet) {
  const TemporaryDirectory temporary;
  write_synth({.directory = temporary.path() / "shapes",
               .train_images = 12,
               .test_images = 3,
               .size_pixels = 24,
               .seed = 18446744073709551615u});
  const auto json = nlohmann::json::parse(read_file(temporary.path() / "shapes" / "dataset.json"));
  EXPECT_EQ(json["format"], "renkei image folder 1");
  EXPECT_EQ(json["seed"], 18446744073709551615u);
  EXPECT_EQ(json["train_images"], 12);
  EXPECT_EQ(json["test_images"], 3);
  EXPECT_EQ(json["size_pixels"], 24);
  EXPECT_EQ(json["classes"], shape_names());
}

TEST(WriteSynth, AcceptsAnEmptyDirectoryAndASlashAtTheEnd) {
  const TemporaryDirectory temporary;
  fs::create_directory(temporary.path() / "empty");
  write_synth({.directory = temporary.path() / "empty" / "", .train_images = 10, .test_images = 0});
  EXPECT_TRUE(fs::exists(temporary.path() / "empty" / "dataset.json"));
  EXPECT_FALSE(fs::exists(temporary.path() / "empty.partial"));
}

TEST(WriteSynth, FollowsALinkToAnEmptyDirectory) {
  const TemporaryDirectory temporary;
  fs::create_directory(temporary.path() / "disk");
  fs::create_directory_symlink(temporary.path() / "disk", temporary.path() / "link");
  write_synth({.directory = temporary.path() / "link", .train_images = 10, .test_images = 0});
  EXPECT_TRUE(fs::is_symlink(temporary.path() / "link"));
  EXPECT_TRUE(fs::exists(temporary.path() / "disk" / "dataset.json"));
}

TEST(WriteSynth, RefusesADirectoryThatIsNotEmpty) {
  const TemporaryDirectory temporary;
  std::ofstream(temporary.path() / "thesis.txt") << "precious";
  expect_error(ErrorCode::usage, "is not empty",
               [&] { write_synth({.directory = temporary.path(), .train_images = 10}); });
  EXPECT_EQ(contents(temporary.path()).size(), 1u);
}

TEST(WriteSynth, RefusesWhatAnotherRunIsWriting) {
  const TemporaryDirectory temporary;
  fs::create_directory(temporary.path() / "shapes.partial");
  std::ofstream(temporary.path() / "shapes.partial" / "file") << "theirs";
  expect_error(ErrorCode::usage, "shapes.partial exists", [&] {
    write_synth({.directory = temporary.path() / "shapes", .train_images = 10});
  });
  EXPECT_TRUE(fs::exists(temporary.path() / "shapes.partial" / "file"));
}

TEST(WriteSynth, AFailingWriteLeavesNothingBehind) {
  const TemporaryDirectory temporary;
  {
    const FileSizeLimit limit(200);
    expect_error(ErrorCode::data, "could not write", [&] {
      write_synth({.directory = temporary.path() / "shapes", .train_images = 20, .threads = 4});
    });
  }
  EXPECT_TRUE(fs::is_empty(temporary.path()));
}

TEST(WriteSynth, ADirectoryBelowAFileIsADataError) {
  const TemporaryDirectory temporary;
  std::ofstream(temporary.path() / "file") << "text";
  expect_error(ErrorCode::data, "file", [&] {
    write_synth({.directory = temporary.path() / "file" / "shapes", .train_images = 10});
  });
  expect_error(ErrorCode::usage, "is not a directory",
               [&] { write_synth({.directory = temporary.path() / "file", .train_images = 10}); });
}

TEST(WriteSynth, StoppingItLeavesNothingBehind) {
  const TemporaryDirectory temporary;
  EXPECT_THROW(write_synth({.directory = temporary.path() / "shapes",
                            .train_images = 20,
                            .progress =
                                [](int64_t done, int64_t) {
                                  if (done > 5) throw std::runtime_error("stopped");
                                }}),
               std::runtime_error);
  EXPECT_TRUE(fs::is_empty(temporary.path()));
}

TEST(WriteSynth, RefusesImpossibleOptions) {
  const TemporaryDirectory temporary;
  const fs::path directory = temporary.path() / "shapes";
  expect_error(ErrorCode::usage, "0 training",
               [&] { write_synth({.directory = directory, .train_images = 0}); });
  expect_error(ErrorCode::usage, "-1 test",
               [&] { write_synth({.directory = directory, .test_images = -1}); });
  expect_error(ErrorCode::usage, "4 pixels",
               [&] { write_synth({.directory = directory, .size_pixels = 4}); });
  expect_error(ErrorCode::usage, "quality 0",
               [&] { write_synth({.directory = directory, .quality = 0}); });
  EXPECT_TRUE(fs::is_empty(temporary.path()));
}

}  // namespace
}  // namespace renkei::data
