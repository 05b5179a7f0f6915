// Data sets on object storage, from end to end.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "data/loader/loader.h"
#include "data/pack/pack.h"
#include "data/pack/verify.h"
#include "data/source/open_source.h"
#include "data/source/synth_source.h"
#include "data/stored_data.h"
#include "tests/data/expect_error.h"
#include "tests/data/field_values.h"
#include "tests/s3/s3_server.h"

namespace renkei::data {
namespace {

constexpr TransformOptions kSmall{.height = 8, .width = 8, .crop = Crop::random, .flip = true};

class S3EpochTest : public S3Test {
 protected:
  PackOptions to_s3() const {
    return {.directory = "s3://data/set",
            .storage = {.s3 = server_.options()},
            .shard_bytes = 20'000,
            .threads = 2};
  }
  std::unique_ptr<Source> open() const {
    return open_source(server_.open(), {.path = "s3://data/set", .threads = 2});
  }
};

TEST_F(S3EpochTest, PacksToAndFromObjectStorage) {
  const auto drawn = make_synth_source({.images = 120, .width = 24, .height = 16});
  const PackResult there = pack({{"train", *drawn}}, to_s3());
  EXPECT_GT(there.shards, 3);
  const auto stored = open();
  EXPECT_EQ(stored->count(), 120);
  EXPECT_EQ(stored->class_names(), drawn->class_names());
  EXPECT_TRUE(verify(*stored, {.decode = true, .threads = 2}).empty());

  const TemporaryDirectory root;
  const PackResult back =
      pack({{"train", *stored}}, {.directory = root.path(), .shard_bytes = 20'000});
  EXPECT_EQ(back.checksum, there.checksum);
  expect_error(ErrorCode::usage, "s3://data/set already holds a data set", [&] {
    pack({{"train", *drawn}}, to_s3());
  });
}

TEST_F(S3EpochTest, AnInterruptedPackIsContinued) {
  const auto drawn = make_synth_source({.images = 120, .width = 24, .height = 16});
  PackOptions options = to_s3();
  options.progress = [](int64_t done, int64_t) {
    if (done == 80) throw Error(ErrorCode::data, "interrupted", "not really");
  };
  EXPECT_THROW(pack({{"train", *drawn}}, options), Error);
  const PackResult result = pack({{"train", *drawn}}, to_s3());
  EXPECT_GT(result.shards_found, 0);
  EXPECT_LT(result.shards_found, result.shards);
  EXPECT_TRUE(verify(*open(), {}).empty());
}

// Everything that a loader delivers in two epochs, compared with a local copy of the same images,
// while the server is killed in the middle of each.
TEST_F(S3EpochTest, AServerThatIsKilledAndRestartedCostsNoSample) {
  const auto drawn = make_synth_source({.images = 400, .width = 24, .height = 16});
  pack({{"train", *drawn}}, to_s3());
  const StoredData remote(open(), {.transform = kSmall, .seed = 5});
  const StoredData local(make_synth_source({.images = 400, .width = 24, .height = 16}),
                         {.transform = kSmall, .seed = 5});
  const Sampler sampler({.count = 400, .global_batch = 16, .seed = 3});
  Loader loader(remote, sampler,
                {.threads = 2, .memory_bytes = 1100 << 10, .cache = false, .epochs = 2});
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    std::thread restart;
    std::vector<int> times(400);
    for (int64_t step = 0; step < sampler.steps_per_epoch(); ++step) {
      if (step == 8) {
        server_.kill();
        restart = std::thread([&] {
          std::this_thread::sleep_for(std::chrono::seconds(1));
          server_.start();
        });
      }
      const auto batch = loader.load(epoch, step);
      for (int64_t i = 0; i < batch->samples; ++i) {
        const int64_t sample = sampler.sample(epoch, sampler.slice(step, 0).begin + i);
        ++times[static_cast<size_t>(sample)];
        const std::vector<float> expected = input_of(local, sample, epoch);
        const auto place = static_cast<size_t>(i);
        ASSERT_TRUE(std::ranges::equal(
            batch->fields[0].as<float>().subspan(place * expected.size(), expected.size()),
            expected));
        ASSERT_EQ(batch->fields[1].as<int64_t>()[place], label_of(local, sample));
      }
    }
    restart.join();
    EXPECT_EQ(times, std::vector<int>(400, 1));
  }
  EXPECT_EQ(loader.statistics().samples, 800);
}

TEST_F(S3EpochTest, AnOutageIsNoBadSample) {
  const auto drawn = make_synth_source({.images = 40, .width = 24, .height = 16});
  pack({{"train", *drawn}}, to_s3());
  S3Options options = server_.options();
  options.patience_seconds = 0.5;
  const StoredData images(
      open_source(open_storage("s3://data", {.s3 = options}), {.path = "s3://data/set"}),
      {.transform = kSmall});
  server_.kill();
  Loader loader(images, Sampler({.count = 40, .global_batch = 8, .seed = 3}),
                {.cache = false, .bad_samples = BadSamples::skip});
  expect_error(ErrorCode::communication,
               "the object storage at 127.0.0.1:", [&] { loader.load(0, 0); });
}

}  // namespace
}  // namespace renkei::data
