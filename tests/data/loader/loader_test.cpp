#include "data/loader/loader.h"

#include <fcntl.h>
#include <unistd.h>

#include <set>

#include "base/philox.h"
#include "data/pack/pack.h"
#include "data/random_data.h"
#include "data/source/open_source.h"
#include "data/source/synth_source.h"
#include "data/stored_data.h"
#include "tests/data/expect_error.h"
#include "tests/data/field_values.h"
#include "tests/data/temporary_directory.h"
#include "tests/data/write_file.h"

namespace renkei::data {
namespace {

namespace fs = std::filesystem;

constexpr TransformOptions kSmall{.height = 8, .width = 8, .crop = Crop::random, .flip = true};

// A packed data set of drawn images.
class LoaderTest : public testing::Test {
 protected:
  void make(int64_t images) {
    pack({{"train", *make_synth_source({.images = images, .width = 16, .height = 16})}},
         {.directory = directory_.path(), .shard_bytes = 8000});
  }
  std::unique_ptr<StoredData> open() const {
    const std::string path = directory_.path().string();
    return std::make_unique<StoredData>(open_source(open_storage(path), {.path = path}),
                                        StoredDataOptions{.transform = kSmall, .seed = 5});
  }
  // Turns over a bit in the bytes of a sample.
  void damage(int64_t sample) const {
    const auto images = open();
    const Location where = images->source()->locate(sample, 0);
    const int file = ::open(images->source()->file_name(where.file).c_str(), O_RDWR);
    char byte = 0;
    ASSERT_EQ(::pread(file, &byte, 1, where.offset + where.length / 2), 1);
    byte ^= 1;
    ASSERT_EQ(::pwrite(file, &byte, 1, where.offset + where.length / 2), 1);
    ::close(file);
  }

  TemporaryDirectory directory_;
};

TEST_F(LoaderTest, DeliversWhatTheDataSetHolds) {
  make(50);
  const auto images = open();
  const Sampler sampler({.count = 50, .global_batch = 16, .seed = 3});
  for (const int threads : {1, 3}) {
    Loader loader(*images, sampler, {.threads = threads, .readers = threads});
    for (int64_t epoch = 0; epoch < 3; ++epoch)
      for (int64_t step = 0; step < sampler.steps_per_epoch(); ++step) {
        const auto batch = loader.load(epoch, step);
        const Slice slice = sampler.slice(step, 0);
        ASSERT_EQ(batch->samples, slice.size());
        for (int64_t i = 0; i < batch->samples; ++i) {
          const int64_t sample = sampler.sample(epoch, slice.begin + i);
          const std::vector<float> expected = input_of(*images, sample, epoch);
          const auto place = static_cast<size_t>(i);
          const auto input =
              batch->fields[0].as<float>().subspan(place * expected.size(), expected.size());
          ASSERT_TRUE(std::ranges::equal(input, expected));
          ASSERT_EQ(batch->fields[1].as<int64_t>()[place], label_of(*images, sample));
        }
      }
  }
}

// All inputs of an epoch, one after the other, however many ranks there are, with jumps.
std::vector<float> epoch_of(const Dataset& dataset, int64_t batch, int ranks, int64_t epoch,
                            int64_t first_step) {
  const Sampler sampler(
      {.count = dataset.count(), .global_batch = batch, .ranks = ranks, .seed = 3});
  std::vector<std::unique_ptr<Loader>> loaders;
  for (int rank = 0; rank < ranks; ++rank)
    loaders.push_back(
        std::make_unique<Loader>(dataset, sampler, LoaderOptions{.rank = rank, .threads = 2}));
  std::vector<float> all;
  for (int64_t step = first_step; step < sampler.steps_per_epoch(); ++step)
    for (const auto& loader : loaders) {
      const auto inputs = values_of<float>(*loader->load(epoch, step), kInput);
      all.insert(all.end(), inputs.begin(), inputs.end());
    }
  return all;
}

TEST_F(LoaderTest, TheOrderIsTheSameForAnyRanksAndAfterAResume) {
  make(53);
  const auto images = open();
  const int64_t size = images->fields()[0].elements();
  Random random(1, RandomUse::shuffle, 0, 0);
  for (int repeat = 0; repeat < 6; ++repeat) {
    const int64_t batch = 1 + random.below(20), epoch = random.below(5);
    const std::vector<float> whole = epoch_of(*images, batch, 1, epoch, 0);
    ASSERT_EQ(whole.size(), static_cast<size_t>(53 * size));
    for (const int ranks : {2, 3, 4}) ASSERT_EQ(epoch_of(*images, batch, ranks, epoch, 0), whole);
    const int64_t steps = (53 - 1) / batch + 1;
    const int64_t step = random.below(static_cast<uint32_t>(steps));
    const auto skipped = static_cast<std::ptrdiff_t>(step * batch * size);
    ASSERT_EQ(epoch_of(*images, batch, 3, epoch, step),
              std::vector<float>(whole.begin() + skipped, whole.end()));
  }
}

TEST_F(LoaderTest, MayBeAskedForAnyBatchAtAnyTime) {
  make(40);
  const auto images = open();
  const Sampler sampler({.count = 40, .global_batch = 7, .seed = 3});
  Loader loader(*images, sampler, {.threads = 2}), other(*images, sampler, {.threads = 1});
  Random random(2, RandomUse::shuffle, 0, 0);
  for (int repeat = 0; repeat < 40; ++repeat) {
    const int64_t epoch = random.below(3), step = random.below(6);
    const auto a = loader.load(epoch, step), b = other.load(epoch, step);
    for (const size_t field : {0, 1})
      ASSERT_TRUE(std::ranges::equal(a->fields[field].bytes, b->fields[field].bytes));
  }
}

TEST_F(LoaderTest, ServesLaterEpochsFromTheCacheWhenAllFit) {
  make(40);
  const auto images = open();
  const Sampler sampler({.count = 40, .global_batch = 8});
  for (const bool disk : {false, true}) {
    Loader loader(*images, sampler,
                  {.threads = 2,
                   .cache = !disk,
                   .disk_cache_bytes = disk ? 1 << 20 : 0,
                   .cache_directory = (directory_.path() / "cache").string(),
                   .epochs = 4});
    for (int64_t epoch = 0; epoch < 4; ++epoch)
      for (int64_t step = 0; step < 5; ++step) loader.load(epoch, step);
    const LoaderStatistics statistics = loader.statistics();
    EXPECT_EQ(statistics.samples, 160);
    // All but those that are read for two epochs at the same time.
    EXPECT_GT(statistics.cache_hits, 60);
    EXPECT_LE(statistics.cache_hits, 120);
  }
}

TEST_F(LoaderTest, ABadSampleStopsWithItsName) {
  make(40);
  damage(17);
  const auto images = open();
  const Sampler sampler({.count = 40, .global_batch = 40, .shuffle = false});
  Loader loader(*images, sampler, {.threads = 2});
  expect_error(ErrorCode::data, "sample 17 does not match its checksum",
               [&] { loader.load(0, 0); });
}

TEST_F(LoaderTest, ABadSampleIsReplacedAlikeEverywhere) {
  make(40);
  damage(17);
  damage(3);
  const auto images = open();
  std::vector<std::vector<float>> inputs;
  for (const int threads : {1, 3})
    for (const bool cache : {false, true}) {
      const Sampler sampler({.count = 40, .global_batch = 10, .seed = 9});
      Loader loader(
          *images, sampler,
          {.threads = threads, .cache = cache, .bad_samples = BadSamples::skip, .seed = 9});
      inputs.emplace_back();
      for (int64_t step = 0; step < 4; ++step) {
        const auto loaded = values_of<float>(*loader.load(1, step), kInput);
        inputs.back().insert(inputs.back().end(), loaded.begin(), loaded.end());
      }
      const auto bad = loader.statistics().bad_samples;
      EXPECT_EQ(bad.count(17), 1u);
      EXPECT_EQ(bad.count(3), 1u);
      EXPECT_EQ(bad.size(), 2u);
    }
  for (const auto& other : inputs) EXPECT_EQ(other, inputs[0]);
}

// The first stage of a pipeline has the images, the last one the labels: a sample that only the one
// can see to be bad is replaced for both.
TEST_F(LoaderTest, ABadSampleIsReplacedForRanksThatLoadOtherFields) {
  make(40);
  for (const int64_t sample : {17, 3, 25}) damage(sample);
  const auto images = open();
  const Sampler sampler({.count = 40, .global_batch = 10, .seed = 9});
  LoaderOptions options{.threads = 2, .bad_samples = BadSamples::skip, .seed = 9};
  Loader both(*images, sampler, options);
  options.fields = std::vector<size_t>{1};
  options.fields_elsewhere = {0, 1};
  Loader labels(*images, sampler, options);
  for (int64_t step = 0; step < 4; ++step) {
    const auto batch = labels.load(0, step);
    ASSERT_EQ(batch->fields.size(), 1u);
    EXPECT_EQ(values_of<int64_t>(*batch, kTarget),
              values_of<int64_t>(*both.load(0, step), kTarget));
  }
  EXPECT_EQ(labels.statistics().bad_samples.size(), 3u);
}

TEST_F(LoaderTest, ADataSetOfBadSamplesEnds) {
  for (const char* name : {"a", "b"}) write_test_file(directory_.path() / "c" / name, "x");
  for (int i = 0; i < 3; ++i)
    write_test_file(directory_.path() / "c" / fmt::format("{}.jpg", i), "no image");
  const auto images = open();
  Loader loader(*images, Sampler({.count = 3, .global_batch = 3}),
                {.bad_samples = BadSamples::skip});
  expect_error(ErrorCode::data, "100 samples in a row were bad", [&] { loader.load(0, 0); });
}

TEST_F(LoaderTest, AFileThatVanishesIsNamed) {
  const auto jpeg = make_synth_source({.images = 1})->read(0, 0);
  for (int i = 0; i < 4; ++i)
    write_test_file(directory_.path() / "c" / fmt::format("{}.jpg", i), jpeg);
  const auto images = open();
  fs::remove(directory_.path() / "c" / "2.jpg");
  Loader loader(*images, Sampler({.count = 4, .global_batch = 4}), {});
  expect_error(ErrorCode::data, "c/2.jpg: No such file", [&] { loader.load(0, 0); });
}

TEST_F(LoaderTest, TooLittleMemoryIsNamedBeforeItStarts) {
  make(10);
  const auto images = open();
  expect_error(ErrorCode::usage, "two batches of 10 samples take", [&] {
    Loader(*images, Sampler({.count = 10, .global_batch = 10}), {.memory_bytes = 10'000});
  });
}

TEST_F(LoaderTest, ABatchMayBeKeptWhileOthersAreLoaded) {
  make(40);
  const auto images = open();
  const Sampler sampler({.count = 40, .global_batch = 4});
  Loader loader(*images, sampler, {.threads = 2});
  const auto kept = loader.load(0, 0);
  const auto before = values_of<float>(*kept, kInput);
  for (int64_t step = 1; step < 10; ++step) loader.load(0, step);
  EXPECT_EQ(values_of<float>(*kept, kInput), before);
}

TEST(Loader, ServesDataInMemoryAndNumbersAsTargets) {
  const RandomData data({.sample_shape = {5}, .count = 20, .target_size = 2, .seed = 1});
  const Sampler sampler({.count = 20, .global_batch = 6, .ranks = 4});
  for (int rank = 0; rank < 4; ++rank) {
    Loader loader(data, sampler, {.rank = rank, .threads = 2});
    for (int64_t step = 0; step < sampler.steps_per_epoch(); ++step) {
      const auto batch = loader.load(2, step);
      const Slice slice = sampler.slice(step, rank);
      ASSERT_EQ(batch->samples, slice.size());
      for (int64_t i = 0; i < slice.size(); ++i) {
        const int64_t sample = sampler.sample(2, slice.begin + i);
        const auto place = static_cast<size_t>(i);
        EXPECT_TRUE(std::ranges::equal(batch->fields[0].as<float>().subspan(place * 5, 5),
                                       input_of(data, sample)));
        EXPECT_TRUE(std::ranges::equal(batch->fields[1].as<float>().subspan(place * 2, 2),
                                       values_of<float>(data, sample, kTarget)));
      }
    }
  }
}

}  // namespace
}  // namespace renkei::data
