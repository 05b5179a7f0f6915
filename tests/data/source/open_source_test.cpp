#include "data/source/open_source.h"

#include "base/checksum.h"
#include "base/file.h"
#include "data/source/shard_index.h"
#include "tests/data/expect_error.h"
#include "tests/data/source/sample_files.h"
#include "tests/data/temporary_directory.h"
#include "tests/data/write_file.h"

namespace renkei::data {
namespace {

class OpenSource : public testing::Test {
 protected:
  std::string add(const std::string& name, std::string_view content) {
    write_test_file(directory_.path() / name, content);
    return (directory_.path() / name).string();
  }
  std::unique_ptr<Source> open(const std::string& path, Part part = Part::train) {
    return open_source(open_storage(path), {.path = path, .part = part, .threads = 2});
  }
  std::string root() const { return directory_.path().string(); }

  // "bytes/label" of every sample, by `read` and by the place that `locate` names.
  static std::string content(const Source& source) {
    std::string all;
    for (int64_t sample = 0; sample < source.count(); ++sample) {
      const std::string read = source.read(sample, 0);
      const Location where = source.locate(sample, 0);
      const std::string stored = source.file(where.file)->read(where.offset, where.length);
      EXPECT_EQ(source.unwrap(sample, 0, stored), read);
      all += fmt::format("{}/{} ", read, source.label(sample));
    }
    return all;
  }

  // Of a record that holds more than that.
  static std::string image_of(const Source& source, int64_t sample) {
    const std::string record = source.read(sample, 0);
    std::string scratch;
    return std::string(source.content(sample, *find_field(source, kInput), record, scratch));
  }

  TemporaryDirectory directory_;
};

TEST_F(OpenSource, AFolderOfClasses) {
  add("b/2.jpg", "two");
  add("b/1.PNG", "one");
  add("a/notes.txt", "no image");
  add("c/3.jpeg", "three");
  const auto source = open(root());
  EXPECT_EQ(source->format(), "image folder");
  EXPECT_EQ(content(*source), "one/1 two/1 three/2 ");
  EXPECT_EQ(source->classes(), 3);
  EXPECT_THAT(source->describe(0), testing::EndsWith("b/1.PNG"));
  EXPECT_EQ(open(root(), Part::held_out), nullptr);
}

TEST_F(OpenSource, TrainAndTestFolders) {
  add("train/a/1.jpg", "one");
  add("val/a/2.jpg", "two");
  EXPECT_EQ(content(*open(root())), "one/0 ");
  EXPECT_EQ(content(*open(root(), Part::held_out)), "two/0 ");
}

TEST_F(OpenSource, TarShardsByScanAndByIndex) {
  const std::string first = tar_member("__meta__.json", "{}") + tar_member("0.jpg", "zero") +
                            tar_member("0.cls", "4\n") + tar_end();
  const std::string second = tar_member("1.cls", "2") + tar_member("1.PNG", "one") + tar_end();
  const std::string path = add("train-0.tar", first);
  add("train-1.tar", second);
  add("test-0.tar", tar_member("2.jpg", "two") + tar_member("2.cls", "1"));
  EXPECT_EQ(content(*open(root())), "zero/4 one/2 ");
  EXPECT_EQ(content(*open(root(), Part::held_out)), "two/1 ");
  EXPECT_EQ(content(*open(path)), "zero/4 ");

  add("train-0.idx", "v1.2 1\njpg 1536 4 0.jpg cls 2560 2 0.cls\n");
  EXPECT_EQ(content(*open(root())), "zero/4 one/2 ");
  add("train-0.idx", "v1.2 1\njpg 1536 3 0.jpg cls 2560 2 0.cls\n");
  EXPECT_EQ(content(*open(root())), "zer/4 one/2 ");  // so the index was used

  add("train-0.index", format_shard_index({{.offset = 1536,
                                            .size = 4,
                                            .checksum = Checksum().add("zero").value(),
                                            .label = 9,
                                            .width = 3,
                                            .height = 2}},
                                          static_cast<int64_t>(first.size())));
  const auto source = open(root());
  EXPECT_EQ(content(*source), "zero/9 one/2 ");
  EXPECT_EQ(source->extent(0)->width, 3);
  EXPECT_FALSE(source->extent(1));
}

TEST_F(OpenSource, ATarOfClassDirectories) {
  const std::string path =
      add("a.tar", tar_member("set/cat/1.jpg", "x") + tar_member("set/ape/1.jpg", "y") + tar_end());
  const auto source = open(path);
  EXPECT_EQ(content(*source), "x/1 y/0 ");
  EXPECT_THAT(source->class_names(), testing::ElementsAre("ape", "cat"));
}

TEST_F(OpenSource, ATarWithoutLabels) {
  const auto source = open(add("a.tar", tar_member("1.jpg", "x") + tar_end()));
  EXPECT_EQ(source->label(0), kNoLabel);
  EXPECT_EQ(source->classes(), 0);
}

TEST_F(OpenSource, TroubleWithTarShardsIsNamed) {
  expect_error(ErrorCode::data, "the label '1.cls' is not a number",
               [&] { open(add("a.tar", tar_member("1.jpg", "x") + tar_member("1.cls", "cat"))); });
  expect_error(ErrorCode::data, "has two images",
               [&] { open(add("a.tar", tar_member("1.jpg", "x") + tar_member("1.png", "y"))); });
  expect_error(ErrorCode::data, "1 of 2 samples have no .cls member", [&] {
    open(add("a.tar",
             tar_member("1.jpg", "x") + tar_member("2.jpg", "y") + tar_member("2.cls", "1")));
  });
  expect_error(ErrorCode::data, "holds no samples", [&] { open(add("a.tar", tar_end())); });
}

TEST_F(OpenSource, ASampleThatChangedDoesNotPassItsChecksum) {
  std::string tar = tar_member("0.jpg", "zero") + tar_end();
  const auto size = static_cast<int64_t>(tar.size());
  add("0.index",
      format_shard_index(
          {{.offset = 512, .size = 4, .checksum = Checksum().add("zero").value(), .label = 0}},
          size));
  tar[513] = 'E';
  const auto source = open(add("0.tar", tar));
  expect_error(ErrorCode::data, "sample 0 does not match its checksum (at offset 512)",
               [&] { source->read(0, 0); });
}

TEST_F(OpenSource, ADamagedIndexIsRefused) {
  const std::string tar = tar_member("0.jpg", "zero") + tar_end();
  const std::string path = add("0.tar", tar);
  const auto size = static_cast<int64_t>(tar.size());
  const std::string good = format_shard_index({{.offset = 512, .size = 4, .label = 0}}, size);
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] ^= 1;
    EXPECT_THROW(parse_shard_index(bad, "0.index", size), Error) << at;
    EXPECT_THROW(parse_shard_index(good.substr(0, at), "0.index", size), Error) << at;
  }
  add("0.index", format_shard_index({{.offset = 512, .size = 4, .label = 0}}, size + 512));
  expect_error(ErrorCode::data, "is of an archive of", [&] { open(path); });
  add("0.index", format_shard_index({{.offset = 512, .size = size, .label = 0}}, size));
  expect_error(ErrorCode::data, "0.index: the index puts", [&] { open(path); });
}

TEST_F(OpenSource, NpzStoredAndDeflated) {
  const ElementType int32{ElementKind::signed_integer, 4, false};
  for (const bool deflated : {false, true}) {
    const std::string path =
        add("a.npz", zip({{"x_train.npy", npy(kByteElement, {2, 3}, "abcdef")},
                          {"y_train.npy", npy(int32, {2}, as_bytes<int32_t>({7, 1}))},
                          {"x_test.npy", npy(kByteElement, {1, 3}, "xyz")},
                          {"y_test.npy", npy(int32, {1, 1}, as_bytes<int32_t>({5}))}},
                         deflated));
    const auto source = open(path);
    EXPECT_EQ(source->format(), "npz");
    EXPECT_EQ(content(*source), "abc/7 def/1 ");
    EXPECT_EQ(source->fields()[0].layout, (ArrayLayout{kByteElement, {3}}));
    EXPECT_EQ(source->classes(), 8);
    EXPECT_EQ(content(*open(path, Part::held_out)), "xyz/5 ");
  }
}

TEST_F(OpenSource, NpyWithLabelsBesideIt) {
  const std::string path = add("x_a.npy", npy(kByteElement, {2, 2}, "abcd"));
  EXPECT_EQ(content(*open(path)), "ab/-1 cd/-1 ");
  add("y_a.npy", npy(kByteElement, {2}, "\x03\x04"));
  EXPECT_EQ(content(*open(path)), "ab/3 cd/4 ");
}

TEST_F(OpenSource, TroubleWithArraysIsNamed) {
  const auto open_zip = [&](const std::vector<std::pair<std::string, std::string>>& members) {
    open(add("a.npz", zip(members, false)));
  };
  const std::string x = npy(kByteElement, {2, 1}, "ab");
  expect_error(ErrorCode::data, "it has first, second", [&] {
    open_zip({{"first.npy", x}, {"second.npy", npy(kByteElement, {3}, "abc")}});
  });
  expect_error(ErrorCode::data, "'y' is not of the length of the 2 samples", [&] {
    open_zip({{"x.npy", x}, {"y.npy", npy(kByteElement, {3}, "abc")}});
  });
  expect_error(ErrorCode::data, "the label of sample 1 is -1", [&] {
    open_zip(
        {{"x.npy", x}, {"y.npy", npy({ElementKind::signed_integer, 1, false}, {2}, "\x01\xff")}});
  });
  expect_error(ErrorCode::data, "has no samples", [&] {
    open_zip({{"x.npy", npy(kByteElement, {0, 1}, "")}});
  });
}

TEST_F(OpenSource, TfRecordFiles) {
  add("train-00000-of-00002", tf_record(example("zero", 4)) + tf_record(example("one", 300)));
  add("train-00001-of-00002", tf_record(example("two", 1)));
  const auto source = open(root());
  EXPECT_EQ(source->format(), "TFRecord");
  EXPECT_EQ(source->count(), 3);
  EXPECT_EQ(image_of(*source, 1), "one");
  EXPECT_EQ(source->label(1), 300);
  EXPECT_EQ(source->locate(2, 0).file, 1);
}

TEST_F(OpenSource, ADamagedTfRecordIsNamed) {
  std::string bytes = tf_record(example("zero", 4)) + tf_record(example("one", 1));
  bytes[bytes.size() - 20] ^= 1;
  const auto source = open(add("a.tfrecord", bytes));
  EXPECT_EQ(image_of(*source, 0), "zero");
  expect_error(ErrorCode::data, "sample 1 does not match its checksum",
               [&] { source->read(1, 0); });
}

TEST_F(OpenSource, WhatIsNoDataSetIsNamed) {
  expect_error(ErrorCode::data, "there is no data set at '/no/such'", [&] { open("/no/such"); });
  expect_error(ErrorCode::data, "is neither a tar, npy, npz", [&] { open(add("a.txt", "hello")); });
  expect_error(ErrorCode::data, "is neither a tar, npy, npz", [&] { open(add("empty", "")); });
}

TEST_F(OpenSource, AFileThatBecomesShorterIsNoticed) {
  const std::string path = add("a.npy", npy(kByteElement, {2, 1000}, std::string(2000, 'x')));
  const auto source = open(path);
  std::filesystem::resize_file(path, 500);
  expect_error(ErrorCode::data, "became shorter", [&] { source->read(1, 0); });
}

TEST_F(OpenSource, ReadsWithoutThePageCache) {
  std::string numbers;
  for (int i = 0; i < 30'000; ++i) numbers += static_cast<char>(i % 251);
  const std::string path = add("a.npy", npy(kByteElement, {30, 1000}, numbers));
  const auto source = open_source(open_storage(path, {.direct = true}), {.path = path});
  for (const int64_t sample : {0, 3, 29})
    EXPECT_EQ(source->read(sample, 0), numbers.substr(static_cast<size_t>(sample) * 1000, 1000));
}

}  // namespace
}  // namespace renkei::data
