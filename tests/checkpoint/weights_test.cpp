// The weights in checkpoints, for those who only want these.
#include "checkpoint/weights.h"

#include <gtest/gtest.h>

#include <cstring>

#include "capture/safetensors.h"
#include "comm/transport/thread_transport.h"
#include "tests/base/temporary_directory.h"
#include "tests/checkpoint/sample.h"

namespace renkei::checkpoint {
namespace {

std::vector<float> floats_of(const capture::StoredTensor& tensor) {
  const std::string bytes = tensor.read_all();
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST(Weights, OfACheckpointAreItsParametersAndBuffers) {
  const test::TemporaryDirectory root;
  write_sample(root.path(), 10, 3);
  for (const auto& path : {root.path(), directory_of(root.path(), 10)}) {
    const auto weights = read_weights(path);
    EXPECT_EQ(weights.size(), 3u);  // without the optimizer's state
    EXPECT_EQ(floats_of(weights.at("layer.weight")), Sample().weight);
    EXPECT_EQ(weights.at("layer.weight").sizes, (std::vector<int64_t>{6, 10}));
    std::vector<float> part(3);
    weights.at("layer.weight").read(28, {reinterpret_cast<char*>(part.data()), 12});
    EXPECT_EQ(part, (std::vector<float>{7, 8, 9}));
  }
}

TEST(Weights, ThatDifferBetweenReplicasBecomeTheirMean) {
  const test::TemporaryDirectory root;
  const auto directory = directory_of(root.path(), 5);
  make_directories(directory);
  const std::vector<float> first{1, 2}, second{3, 8};
  const std::vector<checkpoint::Run> runs{
      {.name = "mean", .sizes = {2}, .bytes = std::as_bytes(std::span(first))},
      {.name = copy_name(1, "mean"), .sizes = {2}, .bytes = std::as_bytes(std::span(second))}};
  Manifest manifest = manifest_of(5);
  add_shard(manifest, write_shard(directory / shard_name(0), runs));
  sort_pieces(manifest);
  write_file_atomically(directory / "manifest.json", to_text(manifest));
  const auto weights = read_weights(root.path());
  EXPECT_EQ(weights.size(), 1u);
  EXPECT_EQ(floats_of(weights.at("mean")), (std::vector<float>{2, 5}));
}

TEST(Weights, OfARunAreThoseItEndedWithOrElseTheNewestThatAreWhole) {
  const test::TemporaryDirectory run;
  write_sample(run / "checkpoints", 10, 1);
  const auto newer = write_sample(run / "checkpoints", 20, 1);
  EXPECT_EQ(read_weights(run.path()).size(), 3u);
  std::filesystem::resize_file(newer / shard_name(0), 100);
  EXPECT_EQ(read_weights(run.path()).size(), 3u);
  EXPECT_THROW(read_weights(newer), Error);
  capture::write_safetensors(run / "model.safetensors", {{"only", {.sizes = {0}}}});
  EXPECT_EQ(read_weights(run.path()).size(), 1u);
}

// What the others would find meanwhile does not matter.
TEST(Weights, AreThoseThatTheFirstRankFoundForAll) {
  const test::TemporaryDirectory run;
  const auto newest = write_sample(run / "checkpoints", 10, 1);
  comm::run_as_threads(3, [&](comm::Transport& transport) {
    const auto path = transport.rank() == 0 ? run.path() : run / "nowhere";
    EXPECT_EQ(find_weights(path, transport, {}), newest);
  });
  comm::run_as_threads(1, [&](comm::Transport& transport) {
    EXPECT_EQ(find_weights(newest, transport, {}), newest);
    EXPECT_EQ(find_weights(run / "nowhere", transport, {}), run / "nowhere");
    capture::write_safetensors(run / "model.safetensors", {{"only", {.sizes = {0}}}});
    EXPECT_EQ(find_weights(run.path(), transport, {}), run / "model.safetensors");
  });
}

TEST(Weights, WhereThereAreNoneAreRefused) {
  const test::TemporaryDirectory empty;
  EXPECT_THROW(read_weights(empty.path()), Error);
  EXPECT_THROW(read_weights(empty / "nowhere"), Error);
}

}  // namespace
}  // namespace renkei::checkpoint
