#include "checkpoint/store.h"

#include <gtest/gtest.h>

#include "tests/base/temporary_directory.h"
#include "tests/base/thrown_error.h"
#include "tests/checkpoint/sample.h"

namespace renkei::checkpoint {
namespace {

std::vector<float> read_floats(Reader& reader, std::string_view name,
                               const std::vector<int64_t>& sizes, int64_t begin, size_t count) {
  std::vector<float> values(count);
  reader.read(name, {.sizes = sizes}, begin, std::as_writable_bytes(std::span(values)));
  return values;
}

TEST(Checkpoint, AnyPartCanBeReadWhoeverWroteIt) {
  const Sample sample;
  for (const int ranks : {1, 2, 3, 7}) {
    const test::TemporaryDirectory root;
    Reader reader(write_sample(root.path(), 5, ranks));
    EXPECT_EQ(read_floats(reader, "layer.weight", {6, 10}, 0, 60), sample.weight);
    for (const int64_t begin : {0, 1, 19, 20, 59}) {
      const auto part = read_floats(reader, "optimizer/0/layer.weight", {6, 10}, begin,
                                    static_cast<size_t>(60 - begin));
      EXPECT_EQ(part, std::vector(sample.momentum.begin() + begin, sample.momentum.end()));
    }
    std::vector<int64_t> counter(1);
    reader.read("counter", {.dtype = program::DType::i64}, 0,
                std::as_writable_bytes(std::span(counter)));
    EXPECT_EQ(counter, sample.counter);
  }
}

TEST(Checkpoint, AnotherNetworkIsRefused) {
  const test::TemporaryDirectory root;
  Reader reader(write_sample(root.path(), 5, 2));
  const auto missing = test::thrown_error([&] { read_floats(reader, "conv", {1}, 0, 1); });
  EXPECT_THAT(missing.message, testing::HasSubstr("has no 'conv'"));
  const auto other = test::thrown_error([&] { read_floats(reader, "layer.bias", {6}, 0, 6); });
  EXPECT_THAT(other.message, testing::HasSubstr("is f32 [5] there, and f32 [6] in this network"));
}

TEST(Checkpoint, TheNewestWholeOneIsTaken) {
  const test::TemporaryDirectory root;
  EXPECT_EQ(newest_for(2, root / "nothing"), -1);
  for (const int64_t step : {3, 20, 100}) write_sample(root.path(), step, 2);
  std::filesystem::create_directories(root / "step-00000200");  // never finished
  std::filesystem::create_directories(root / "step-x");
  for (const int ranks : {1, 2, 3}) EXPECT_EQ(newest_for(ranks, root.path()), 100);
}

TEST(Checkpoint, TheLastAndTheBestStay) {
  const test::TemporaryDirectory root;
  for (const int64_t step : {1, 2, 3, 4, 5}) {
    Manifest manifest = manifest_of(step);
    manifest.progress.metrics = {{"loss", step == 2 ? 0.5 : 1.0 * static_cast<double>(step)},
                                 {"accuracy", step == 3 ? 0.9 : 0.1}};
    write_sample(root.path(), step, 1, manifest);
  }
  std::filesystem::create_directories(root / "step-00000000");
  const auto steps = [&] {
    std::vector<int64_t> list;
    for (const Found& found : find_checkpoints(root.path())) list.push_back(found.step);
    return list;
  };
  EXPECT_TRUE(prune(root.path(), 5, {.last = 3, .best_by = "loss"}).empty());
  EXPECT_EQ(steps(), (std::vector<int64_t>{5, 4, 3, 2}));
  prune(root.path(), 5, {.last = 1, .best_by = "accuracy"});
  EXPECT_EQ(steps(), (std::vector<int64_t>{5, 3}));
  // What may be on its way stays.
  std::filesystem::create_directories(root / "step-00000006");
  prune(root.path(), 5, {.last = 1, .best_by = ""});
  EXPECT_EQ(steps(), (std::vector<int64_t>{6, 5}));
  remove_after(root.path(), 5);
  EXPECT_EQ(steps(), (std::vector<int64_t>{5}));
}

}  // namespace
}  // namespace renkei::checkpoint
