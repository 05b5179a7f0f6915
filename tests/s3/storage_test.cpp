#include <cstdlib>

#include "base/philox.h"
#include "data/parallel.h"
#include "tests/data/expect_error.h"
#include "tests/s3/s3_server.h"

namespace renkei::data {
namespace {

std::string noise(int64_t bytes) {
  Random random(1, RandomUse::synth_image, 0, 0);
  std::string text(static_cast<size_t>(bytes), '\0');
  for (char& letter : text) letter = static_cast<char>(random());
  return text;
}

TEST_F(S3Test, WhatIsWrittenIsReadAtAnyOffset) {
  const auto storage = server_.open();
  const std::string content = noise(100'003);
  storage->write("s3://data/a/b.bin", content);
  const auto file = storage->open("s3://data/a/b.bin");
  EXPECT_EQ(file->size(), 100'003);
  for (const auto& [offset, length] :
       std::vector<std::pair<int64_t, int64_t>>{{0, 2}, {0, 100'003}, {1, 7}, {99'999, 4}, {50, 0}})
    EXPECT_EQ(file->read(offset, length),
              content.substr(static_cast<size_t>(offset), static_cast<size_t>(length)));
  expect_error(ErrorCode::data, "the file ends after 100003", [&] { file->read(100'000, 4); });
  EXPECT_EQ(storage->counters().opens, 1);
  EXPECT_EQ(storage->counters().bytes, 2 + 100'003 + 7 + 4);
}

TEST_F(S3Test, LongContentGoesUpAndComesDownInParts) {
  const auto storage = server_.open();
  const std::string content = noise((20 << 20) + 17);
  const auto writer = storage->create("s3://data/long.bin");
  for (size_t at = 0; at < content.size(); at += 3'000'000)
    writer->append(std::string_view(content).substr(at, 3'000'000));
  EXPECT_FALSE(storage->is_file("s3://data/long.bin"));  // not before it is complete
  writer->finish();
  EXPECT_TRUE(storage->read("s3://data/long.bin") == content);
  EXPECT_EQ(storage->counters().reads, 3);
}

TEST_F(S3Test, AnUploadThatIsGivenUpLeavesNothing) {
  const auto storage = server_.open();
  storage->create("s3://data/a.bin")->append(noise(9 << 20));
  EXPECT_FALSE(storage->is_file("s3://data/a.bin"));
  EXPECT_TRUE(storage->list("s3://data").empty());
}

TEST_F(S3Test, AnEmptyObjectIsOne) {
  const auto storage = server_.open();
  storage->write("s3://data/empty", "");
  EXPECT_TRUE(storage->is_file("s3://data/empty"));
  EXPECT_EQ(storage->read("s3://data/empty"), "");
}

TEST_F(S3Test, ListsOverSeveralPages) {
  const auto storage = server_.open();
  parallel_for(1'203, 4, [&](int64_t i) {
    storage->write(fmt::format("s3://data/set/{:05}.jpg", i), std::string(1 + i % 7, 'x'));
  });
  const auto entries = storage->list("s3://data/set");
  ASSERT_EQ(entries.size(), 1'203u);
  for (size_t i = 0; i < entries.size(); ++i)
    EXPECT_EQ(entries[i], (StorageEntry{.name = fmt::format("{:05}.jpg", i),
                                        .size = static_cast<int64_t>(1 + i % 7)}));
}

TEST_F(S3Test, ListsDirectoriesAndOddNamesAndHidesHiddenOnes) {
  const auto storage = server_.open();
  const std::vector<std::string> names{"a b+c.jpg", "d(e)=f.jpg", "\u00e9\u6f22.jpg", "p%20q.jpg"};
  for (const std::string& name : names) storage->write("s3://data/set/" + name, name);
  storage->write("s3://data/set/inner dir/x.jpg", "x");
  storage->write("s3://data/set/.hidden", "x");
  storage->write("s3://data/settle/y.jpg", "y");
  std::vector<StorageEntry> expected;
  for (const std::string& name : names)
    expected.push_back({.name = name, .size = static_cast<int64_t>(name.size())});
  expected.push_back({.name = "inner dir", .directory = true});
  std::ranges::sort(expected, {}, &StorageEntry::name);
  EXPECT_EQ(storage->list("s3://data/set"), expected);
  EXPECT_EQ(storage->list("s3://data/set/"), expected);
  EXPECT_EQ(storage->list("s3://data").size(), 2u);
  for (const std::string& name : names) EXPECT_EQ(storage->read("s3://data/set/" + name), name);
}

TEST_F(S3Test, TellsFilesFromDirectories) {
  const auto storage = server_.open();
  storage->write("s3://data/set/x.jpg", "x");
  EXPECT_TRUE(storage->is_directory("s3://data"));
  EXPECT_TRUE(storage->is_directory("s3://data/set"));
  EXPECT_FALSE(storage->is_directory("s3://data/se"));
  EXPECT_FALSE(storage->is_directory("s3://data/set/x.jpg"));
  EXPECT_TRUE(storage->is_file("s3://data/set/x.jpg"));
  EXPECT_FALSE(storage->is_file("s3://data/set"));
  EXPECT_FALSE(storage->is_file("s3://data"));
  storage->remove("s3://data/set/x.jpg");
  storage->remove("s3://data/set/x.jpg");
  EXPECT_FALSE(storage->is_file("s3://data/set/x.jpg"));
}

TEST_F(S3Test, WhatIsNotThereIsADataError) {
  const auto storage = server_.open();
  expect_error(ErrorCode::data, "s3://data/no.tar: there is no such object",
               [&] { storage->open("s3://data/no.tar"); });
  expect_error(ErrorCode::data, "s3://data/no: there is nothing below this prefix",
               [&] { storage->list("s3://data/no"); });
  expect_error(ErrorCode::data, "s3://other: there is no such bucket (NoSuchBucket, status 404)",
               [&] { storage->list("s3://other/x"); });
}

TEST_F(S3Test, AWrongSecretIsRefused) {
  server_.open()->write("s3://data/x", "x");
  ::setenv("AWS_SECRET_ACCESS_KEY", "wrong", 1);
  const auto storage = server_.open();
  expect_error(ErrorCode::usage,
               "s3://data: the object storage refused access (SignatureDoesNotMatch, status 403)",
               [&] { storage->list("s3://data"); });
  expect_error(ErrorCode::usage, "s3://data/x: the object storage refused access (status 403)",
               [&] { storage->open("s3://data/x"); });
  ::setenv("AWS_ACCESS_KEY_ID", "nobody", 1);
  expect_error(ErrorCode::usage, "refused access (InvalidAccessKeyId, status 403)",
               [&] { server_.open()->list("s3://data"); });
}

TEST_F(S3Test, TokensOfTemporaryKeysAreSigned) {
  ::setenv("AWS_SESSION_TOKEN", "token/with+letters=", 1);
  const auto storage = server_.open();
  storage->write("s3://data/x", "x");
  EXPECT_EQ(storage->read("s3://data/x"), "x");
}

TEST_F(S3Test, AnObjectThatChangesIsNotedAtOnce) {
  const auto storage = server_.open();
  storage->write("s3://data/x", "first");
  const auto file = storage->open("s3://data/x");
  storage->write("s3://data/x", "other");
  expect_error(ErrorCode::data, "s3://data/x: the object was changed while it was read",
               [&] { file->read(0, 5); });
  storage->write("s3://data/x", "");
  expect_error(ErrorCode::data, "s3://data/x: the object became shorter while it was read",
               [&] { file->read(3, 2); });
  storage->remove("s3://data/x");
  expect_error(ErrorCode::data, "s3://data/x: there is no such object (NoSuchKey, status 404)",
               [&] { file->read(0, 5); });
}

}  // namespace
}  // namespace renkei::data
