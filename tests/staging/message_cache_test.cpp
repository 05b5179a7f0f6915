#include "staging/message_cache.h"

#include <atomic>
#include <chrono>
#include <map>
#include <thread>

#include "comm/transport/thread_transport.h"
#include "data/loader/loader.h"
#include "data/loader/sample_cache.h"
#include "data/pack/pack.h"
#include "data/source/open_source.h"
#include "data/source/synth_source.h"
#include "data/stored_data.h"
#include "tests/data/field_values.h"
#include "tests/data/temporary_directory.h"

namespace renkei::staging {
namespace {

constexpr double kTimeout = 30;
constexpr comm::Call kMeeting{.operation = "meeting", .timeout_seconds = kTimeout};

std::shared_ptr<const std::string> text(const std::string& content) {
  return std::make_shared<const std::string>(content);
}

// Waits until all ranks have come.
void meet(comm::Transport& transport, int tag) {
  std::byte nothing{};
  for (int rank = 0; rank < transport.size(); ++rank) {
    if (rank == transport.rank()) continue;
    comm::Request sent = transport.send(rank, {&nothing, 1}, tag);
    comm::Request came = transport.receive(rank, {&nothing, 1}, tag);
    transport.wait(came, kMeeting);
    transport.wait(sent, kMeeting);
  }
}

class MessageCacheTest : public testing::TestWithParam<bool> {
 protected:
  comm::ThreadOptions options() const { return {.rendezvous = GetParam()}; }
};

TEST_P(MessageCacheTest, WhatOneRankOffersAllFind) {
  comm::run_as_threads(
      3,
      [](comm::Transport& transport) {
        const auto peers = make_message_cache(transport, kTimeout);
        data::SampleCache cache(9, 1 << 20, nullptr, peers.get());
        peers->serve(cache);
        for (int64_t sample = transport.rank(); sample < 8; sample += 2)  // some of them twice
          cache.offer(sample, text(std::string(static_cast<size_t>(sample) * 1000, 'x')));
        // A gift may still be on its way; a question of the same rank comes after it.
        for (int64_t sample = transport.rank(); sample < 8; sample += 2)
          EXPECT_TRUE(cache.find(sample)) << sample;
        meet(transport, 5);
        for (int64_t sample = 0; sample < 8; ++sample) {
          const auto found = cache.find(sample);
          ASSERT_TRUE(found) << sample;
          EXPECT_EQ(*found, std::string(static_cast<size_t>(sample) * 1000, 'x'));
          EXPECT_EQ(cache.find_here(sample) != nullptr, sample % 3 == transport.rank());
        }
        EXPECT_FALSE(cache.find(8));
        peers->close();
      },
      options());
}

TEST_P(MessageCacheTest, ARankWithoutRoomIsNotGivenMore) {
  comm::run_as_threads(
      2,
      [](comm::Transport& transport) {
        const auto peers = make_message_cache(transport, kTimeout);
        const int64_t limit = transport.rank() == 1 ? 2000 : 1 << 20;
        data::SampleCache cache(100, limit, nullptr, peers.get());
        peers->serve(cache);
        if (transport.rank() == 0) {
          int64_t found = 0;
          for (int64_t sample = 1; sample < 100; sample += 2) {
            cache.find(sample);
            cache.offer(sample, text(std::string(100, 'x')));
            found += cache.find(sample) != nullptr;
          }
          EXPECT_EQ(found, (2000 - 100 * 16) / 100);
        }
        peers->close();
      },
      options());
}

// Rank 0 fails, and unwinds while rank 1 does something else.
TEST_P(MessageCacheTest, EndsWithoutAWordToTheOthersAfterAnError) {
  comm::run_as_threads(
      2,
      [](comm::Transport& transport) {
        try {
          const auto peers = make_message_cache(transport, kTimeout);
          data::SampleCache cache(9, 1 << 20, nullptr, peers.get());
          peers->serve(cache);
          meet(transport, 5);
          if (transport.rank() == 1) return meet(transport, 6);
          throw Error(ErrorCode::data, "rank 0 lost its data");
        } catch (const Error& error) {
          EXPECT_EQ(error.message, "rank 0 lost its data");
        }
        meet(transport, 6);
      },
      options());
}

// A question that nobody will answer does not keep a rank from ending.
TEST_P(MessageCacheTest, LetsThoseGoWhoWaitForAnAnswerWhenItIsAbandoned) {
  comm::run_as_threads(
      2,
      [](comm::Transport& transport) {
        const auto peers = make_message_cache(transport, kTimeout);
        if (transport.rank() == 1) return meet(transport, 6);  // answers nothing
        std::jthread asks([&] { EXPECT_THROW(peers->ask(1), Error); });
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        peers->abandon();
        asks.join();
        meet(transport, 6);
      },
      options());
}

INSTANTIATE_TEST_SUITE_P(Sends, MessageCacheTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Rendezvous" : "Buffered"; });

// Counts what is read from storage.
class CountedSource : public data::Source {
 public:
  CountedSource(std::unique_ptr<data::Source> source, std::atomic<int64_t>& reads)
      : source_(std::move(source)), reads_(reads) {}
  std::string_view format() const override { return source_->format(); }
  int64_t count() const override { return source_->count(); }
  const std::vector<data::StoredField>& fields() const override { return source_->fields(); }
  int64_t label(int64_t sample) const override { return source_->label(sample); }
  data::Location locate(int64_t, int64_t) const override { return {.length = 1000}; }
  std::string describe(int64_t sample) const override { return std::to_string(sample); }
  int64_t files() const override { return source_->files(); }
  std::string file_name(int64_t file) const override { return source_->file_name(file); }
  std::shared_ptr<const data::ByteFile> file(int64_t file) const override {
    return source_->file(file);
  }
  std::string read(int64_t sample, int64_t record) const override {
    ++reads_;
    return source_->read(sample, record);
  }

 private:
  std::unique_ptr<data::Source> source_;
  std::atomic<int64_t>& reads_;
};

TEST(SharedLoading, ReadsSamplesOnceInAJobAndDeliversTheSame) {
  constexpr int64_t kImages = 3000, kEpochs = 4;
  const data::TemporaryDirectory directory;
  data::pack({{"train", *data::make_synth_source({.images = kImages, .width = 16, .height = 16})}},
             {.directory = directory.path(), .shard_bytes = 800000});
  const auto run = [&](int ranks, bool share, std::atomic<int64_t>& reads) {
    std::map<std::pair<int64_t, int>, std::vector<float>> inputs;
    std::mutex mutex;
    comm::run_as_threads(ranks, [&](comm::Transport& transport) {
      const std::string path = directory.path().string();
      const data::StoredData images(
          std::make_unique<CountedSource>(
              data::open_source(data::open_storage(path), {.path = path}), reads),
          {.transform = {.height = 8, .width = 8, .crop = data::Crop::random}, .seed = 5});
      const data::Sampler sampler(
          {.count = kImages, .global_batch = 60, .ranks = ranks, .seed = 3});
      const auto peers = make_message_cache(transport, kTimeout);
      data::Loader loader(images, sampler,
                          {.rank = transport.rank(),
                           .threads = 2,
                           .memory_bytes = 64 << 20,
                           .epochs = kEpochs,
                           .peers = share ? peers.get() : nullptr});
      for (int64_t epoch = 0; epoch < kEpochs; ++epoch)
        for (int64_t step = 0; step < sampler.steps_per_epoch(); ++step) {
          meet(transport, 6);  // as the reduction of gradients makes them
          const auto batch = loader.load(epoch, step);
          const std::lock_guard lock(mutex);
          inputs[{epoch * sampler.steps_per_epoch() + step, transport.rank()}] =
              data::values_of<float>(*batch, data::kInput);
        }
      loader.close();
    });
    return inputs;
  };
  std::atomic<int64_t> alone = 0, together = 0;
  EXPECT_EQ(run(3, true, together), run(3, false, alone));
  // Each rank reads a third of the samples in an epoch, and after that has these. A rank that is
  // ahead may need a sample of the second epoch before another has read it in the first.
  EXPECT_LE(together, kImages * 6 / 5);
  EXPECT_GT(alone, 2 * kImages);
}

}  // namespace
}  // namespace renkei::staging
