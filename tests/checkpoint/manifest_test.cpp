#include "checkpoint/manifest.h"

#include <gtest/gtest.h>

#include "base/checksum.h"
#include "tests/base/temporary_directory.h"
#include "tests/base/thrown_error.h"
#include "tests/checkpoint/sample.h"

namespace renkei::checkpoint {
namespace {

// The same text with a valid checksum, as someone who changed it on purpose could write it.
std::string with_checksum(std::string text) {
  const size_t at = std::string("{\n \"checksum\": \"").size();
  text.replace(at, 16, 16, '0');
  return text.replace(at, 16, Checksum().add(text).hex());
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return with_checksum(text.replace(at, what.size(), with));
}

TEST(Manifest, ComesBackAsItWasWritten) {
  const test::TemporaryDirectory root;
  Manifest manifest = manifest_of(7);
  manifest.progress.loss_scale = 1.0 / 3;
  manifest.progress.metrics["loss"] = 0.1;
  manifest.notes["who"] = "a test";
  const Reader reader(write_sample(root.path(), 7, 3, manifest));
  const Manifest& read = reader.manifest();
  EXPECT_EQ(read.progress.step, 7);
  EXPECT_EQ(read.progress.loss_scale, 1.0 / 3);
  EXPECT_EQ(read.progress.metrics, manifest.progress.metrics);
  EXPECT_EQ(read.settings, manifest.settings);
  EXPECT_EQ(read.plan, manifest.plan);
  EXPECT_EQ(read.notes, manifest.notes);
  EXPECT_EQ(read.files.size(), 3u);
  EXPECT_EQ(read.tensors.size(), 4u);
}

TEST(Manifest, WhatSomeoneMadeUpIsRefusedWithASentence) {
  const test::TemporaryDirectory root;
  const auto directory = write_sample(root.path(), 7, 2);
  const std::string good = read_file(directory / "manifest.json");
  ASSERT_NO_THROW(parse_manifest(with_checksum(good), "m"));
  const auto refused = [&](const std::string& what, const std::string& with) {
    return test::thrown_error([&] { parse_manifest(replaced(good, what, with), "m"); }).message;
  };
  EXPECT_THAT(refused("\"version\": 1", "\"version\": 2"), testing::HasSubstr("version 2"));
  EXPECT_THAT(refused("\"rank-0.safetensors\"", "\"../../etc/passwd\""),
              testing::HasSubstr("no name of a file"));
  EXPECT_THAT(refused("\"count\": 30", "\"count\": 29"),
              testing::HasSubstr("missing or there twice"));
  EXPECT_THAT(refused("\"f32\"", "\"f31\""), testing::HasSubstr("dtype"));
  EXPECT_THAT(refused("\"notes\": {}", "\"notes\": 3"), testing::HasSubstr("notes"));
  EXPECT_THAT(refused("\"step\": 7", "\"step\": -7"), testing::HasSubstr("step"));
  EXPECT_THAT(refused("renkei checkpoint", "another thing"),
              testing::HasSubstr("not the manifest"));
}

}  // namespace
}  // namespace renkei::checkpoint
