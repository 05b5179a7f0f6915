#include "data/loader/loader.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/philox.h"
#include "base/units.h"
#include "data/loader/fetch.h"
#include "data/loader/peer_cache.h"

namespace renkei::data {
namespace {

// What a reader takes at once; of these, neighbours in a file are read together.
constexpr size_t kFetchAtOnce = 16;
// How far decoders look past a sample that is still being read.
constexpr size_t kLookPast = 64;
constexpr int64_t kMostReadAhead = int64_t{512} << 20;
constexpr int kMostReplacements = 100;

struct Step {
  int64_t epoch = 0, step = 0;
  auto operator<=>(const Step&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct Buffer {
  std::vector<float> inputs, targets;
  std::vector<int64_t> labels;
};

struct Batch {
  LoadedBatch view;
  std::unique_ptr<Buffer> buffer;
  int64_t left = 0;  // samples that are not decoded yet
  std::map<int64_t, std::exception_ptr> errors;
};

// One sample on its way.
struct Item {
  Step step;
  int64_t position = 0;  // in the epoch
  int64_t place = 0;     // in the batch
  FetchTask task;
  bool ready = false;
  int64_t charged = 0;  // bytes it takes of the read-ahead
  int generation = 0;
};

struct Budget {
  int64_t batch_bytes = 0;
  int64_t batches = 0;
  int64_t read_ahead_bytes = 0;
  int64_t cache_bytes = 0;
};

Budget divide_memory(const Dataset& dataset, const Sampler& sampler, const LoaderOptions& options) {
  const int64_t samples = sampler.largest_slice();
  Budget budget;
  budget.batch_bytes = samples * (dataset.sample_size() * 4 +
                                  (dataset.classes() > 0 ? 8 : dataset.target_size() * 4));
  budget.batch_bytes = std::max<int64_t>(budget.batch_bytes, 1);
  const int64_t least = 2 * budget.batch_bytes + (int64_t{1} << 20);
  if (options.memory_bytes < least)
    throw Error(ErrorCode::usage,
                fmt::format("two batches of {} samples take {}, and the loader may have {}",
                            samples, format_size(least), format_size(options.memory_bytes)),
                "raise data.memory, or choose a smaller batch");
  budget.batches = std::clamp<int64_t>(options.memory_bytes / 2 / budget.batch_bytes, 2, 4);
  const int64_t rest = options.memory_bytes - budget.batches * budget.batch_bytes;
  if (!dataset.source()) return budget;
  budget.read_ahead_bytes = options.cache ? std::min(rest / 2, kMostReadAhead) : rest;
  budget.cache_bytes = options.cache ? rest - budget.read_ahead_bytes : 0;
  return budget;
}

std::unique_ptr<DiskCache> make_disk_cache(const Dataset& dataset, const LoaderOptions& options) {
  if (!dataset.source() || options.disk_cache_bytes <= 0) return nullptr;
  return std::make_unique<DiskCache>(dataset.count(), options.cache_directory,
                                     options.disk_cache_bytes);
}

}  // namespace

int64_t replacement_for(uint64_t seed, int64_t epoch, int64_t position, int attempt,
                        int64_t count) {
  Random random(seed, RandomUse::replacement, static_cast<uint32_t>(epoch),
                static_cast<uint64_t>(position));
  uint64_t value = 0;
  for (int i = 0; i <= attempt; ++i) {
    value = random();
    value = value << 32 | random();
  }
  return static_cast<int64_t>(value % static_cast<uint64_t>(count));
}

struct Loader::State {
  State(const Dataset& the_dataset, const Sampler& the_sampler, const LoaderOptions& the_options)
      : dataset(the_dataset),
        sampler(the_sampler),
        options(the_options),
        budget(divide_memory(dataset, sampler, options)),
        cache(dataset.count(), budget.cache_bytes, make_disk_cache(dataset, options),
              dataset.source() ? options.peers : nullptr) {
    for (int64_t i = 0; i < budget.batches; ++i) free_buffers.push_back(std::make_unique<Buffer>());
  }

  // --- what is next; all with the mutex held ---

  bool at_end() const { return options.epochs > 0 && next.epoch >= options.epochs; }

  void advance() {
    next_place = 0;
    if (++next.step == sampler.steps_per_epoch()) next = {next.epoch + 1, 0};
  }

  // Lines up samples while there is room for their bytes; not too many, for the sake of small ones:
  // a jump would throw them all away.
  void extend() {
    const auto most = static_cast<size_t>(std::max<int64_t>(8 * sampler.largest_slice(), 256));
    while (!at_end() && items.size() < most &&
           (items.empty() || !source() || charged < budget.read_ahead_bytes)) {
      const Slice slice = sampler.slice(next.step, options.rank);
      if (next_place >= slice.size()) {
        advance();
        continue;
      }
      items.push_back(make_item(slice));
      ++next_place;
    }
  }

  std::shared_ptr<Item> make_item(const Slice& slice) {
    auto item = std::make_shared<Item>();
    item->step = next;
    item->position = slice.begin + next_place;
    item->place = next_place;
    item->generation = generation;
    item->task.sample = sampler.sample(next.epoch, item->position);
    if (!source()) {
      item->ready = true;
      return item;
    }
    try {
      item->task.where = source()->locate(item->task.sample);
      item->charged = item->task.where.length;
      charged += item->charged;
      to_read.push_back(item);
      changed_for_readers.notify_one();
    } catch (...) {
      item->task.result.error = std::current_exception();
      item->ready = true;
    }
    return item;
  }

  // The batch of an item, with a buffer; null when there is none free.
  std::shared_ptr<Batch> batch_of(const Item& item) {
    const auto found = batches.find(item.step);
    if (found != batches.end()) return found->second;
    if (free_buffers.empty()) return nullptr;
    auto* made = new Batch{.buffer = std::move(free_buffers.back())};
    free_buffers.pop_back();
    // Dropped by the user of the batch, or by a decoder, never with the mutex held.
    std::shared_ptr<Batch> batch(made, [this](Batch* gone) {
      {
        const std::lock_guard lock(mutex);
        free_buffers.push_back(std::move(gone->buffer));
      }
      changed_for_decoders.notify_all();
      delete gone;
    });
    prepare(*batch, item.step);
    batches[item.step] = batch;
    return batch;
  }

  void prepare(Batch& batch, Step step) const {
    const int64_t samples = sampler.slice(step.step, options.rank).size();
    batch.left = samples;
    Buffer& buffer = *batch.buffer;
    buffer.inputs.resize(static_cast<size_t>(samples * dataset.sample_size()));
    const bool labels = dataset.classes() > 0;
    buffer.labels.resize(static_cast<size_t>(labels ? samples : 0));
    buffer.targets.resize(static_cast<size_t>(labels ? 0 : samples * dataset.target_size()));
    batch.view = {step.epoch, step.step, samples, buffer.inputs, buffer.labels, buffer.targets};
  }

  // The first sample that is there, of the first batches that have memory. Batches get their memory
  // in the order of delivery, whether their samples are there or not: otherwise the last buffer
  // could go to a batch that is not the next to be asked for, and all would wait for ever.
  std::shared_ptr<Item> next_to_decode(std::shared_ptr<Batch>& batch) {
    const size_t end = std::min(items.size(), kLookPast);
    for (size_t i = 0; i < end; ++i) {
      batch = batch_of(*items[i]);
      if (!batch) return nullptr;
      if (!items[i]->ready) continue;
      auto item = items[i];
      items.erase(items.begin() + static_cast<std::ptrdiff_t>(i));
      return item;
    }
    batch = nullptr;
    return nullptr;
  }

  // --- threads ---

  void read() {
    std::unique_lock lock(mutex);
    while (true) {
      changed_for_readers.wait(lock, [&] { return stopping || !to_read.empty(); });
      if (stopping) return;
      // A fair share, so that the first samples are not all with one reader.
      const size_t share = to_read.size() / static_cast<size_t>(options.readers) + 1;
      const size_t count = std::min({kFetchAtOnce, share, to_read.size()});
      std::vector<std::shared_ptr<Item>> mine(to_read.begin(),
                                              to_read.begin() + static_cast<std::ptrdiff_t>(count));
      to_read.erase(to_read.begin(), to_read.begin() + static_cast<std::ptrdiff_t>(count));
      lock.unlock();
      std::vector<FetchTask> tasks;
      for (const auto& item : mine) tasks.push_back(item->task);
      fetch(*source(), cache, tasks, [&](FetchTask& task) {
        {
          const std::lock_guard guard(mutex);
          Item& item = *mine[static_cast<size_t>(&task - tasks.data())];
          item.task.result = std::move(task.result);
          item.ready = true;
          if (item.task.result.from_cache) ++statistics.cache_hits;
        }
        changed_for_decoders.notify_one();
      });
      lock.lock();
    }
  }

  void decode() {
    while (true) {
      std::shared_ptr<Batch> batch;  // outlives the lock: see batch_of
      std::shared_ptr<Item> item;
      {
        std::unique_lock lock(mutex);
        changed_for_decoders.wait(lock, [&] {
          if (stopping) return true;
          item = next_to_decode(batch);
          return item != nullptr;
        });
        if (stopping) return;
      }
      std::exception_ptr error;
      try {
        fill(*item, *batch);
      } catch (...) {
        error = std::current_exception();
      }
      const int64_t bytes =
          item->task.result.bytes ? static_cast<int64_t>(item->task.result.bytes->size()) : 0;
      item->task.result.bytes.reset();
      const std::lock_guard lock(mutex);
      if (item->generation != generation) continue;
      statistics.bytes += bytes;
      charged -= item->charged;
      if (error) batch->errors[item->place] = error;
      if (--batch->left == 0) delivered.notify_all();
      extend();
    }
  }

  void fill(const Item& item, Batch& batch) {
    int64_t sample = item.task.sample;
    for (int attempt = 0;; ++attempt) {
      try {
        if (attempt == 0)
          fill_with(sample, item, batch, &item.task.result);
        else
          fill_with(sample, item, batch, nullptr);
        return;
      } catch (const Error& error) {
        if (error.code != ErrorCode::data || options.bad_samples == BadSamples::stop) throw;
        const std::lock_guard lock(mutex);
        statistics.bad_samples[sample] = error.message;
      }
      if (attempt == kMostReplacements)
        throw Error(ErrorCode::data,
                    fmt::format("{} samples in a row were bad, the last one {}", attempt, sample),
                    "check the data set: renkei data verify");
      sample =
          replacement_for(options.seed, item.step.epoch, item.position, attempt, dataset.count());
    }
  }

  void fill_with(int64_t sample, const Item& item, Batch& batch, const Fetched* fetched) const {
    const auto size = static_cast<size_t>(dataset.sample_size());
    const auto place = static_cast<size_t>(item.place);
    const std::span<float> input(batch.buffer->inputs.data() + place * size, size);
    if (fetched && fetched->error) std::rethrow_exception(fetched->error);
    if (fetched && fetched->bytes)
      dataset.decode(sample, item.step.epoch, *fetched->bytes, input);
    else
      dataset.read_augmented(sample, item.step.epoch, input);
    if (dataset.classes() > 0) {
      batch.buffer->labels[place] = dataset.label(sample);
    } else {
      const auto width = static_cast<size_t>(dataset.target_size());
      dataset.read_target(sample, {batch.buffer->targets.data() + place * width, width});
    }
  }

  const Source* source() const { return dataset.source(); }

  const Dataset& dataset;
  const Sampler sampler;
  const LoaderOptions options;
  const Budget budget;
  SampleCache cache;

  std::mutex mutex;
  std::condition_variable changed_for_readers, changed_for_decoders, delivered;
  bool stopping = false;
  int generation = 0;  // grows when the order starts anew; what belongs to an older one is dropped
  Step next;           // of the sample that is lined up next
  int64_t next_place = 0;
  Step expected;  // the batch that is asked for next, unless the caller jumps
  bool started = false;
  int64_t charged = 0;
  std::deque<std::shared_ptr<Item>> items;    // to decode, in the order of delivery
  std::deque<std::shared_ptr<Item>> to_read;  // of these, those that no reader has taken
  std::map<Step, std::shared_ptr<Batch>> batches;
  std::vector<std::unique_ptr<Buffer>> free_buffers;
  LoaderStatistics statistics;
  std::vector<std::jthread> threads;
};

Loader::Loader(const Dataset& dataset, const Sampler& sampler, const LoaderOptions& options)
    : state_(std::make_unique<State>(dataset, sampler, options)) {
  State& state = *state_;
  if (options.threads < 1 || options.readers < 1)
    throw Error(ErrorCode::usage, "a loader without threads", "choose at least 1");
  for (int i = 0; i < options.threads; ++i)
    state.threads.emplace_back([&state] { state.decode(); });
  for (int i = 0; dataset.source() && i < options.readers; ++i)
    state.threads.emplace_back([&state] { state.read(); });
  if (dataset.source() && options.peers) options.peers->serve(state.cache);
}

Loader::~Loader() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->changed_for_readers.notify_all();
  state_->changed_for_decoders.notify_all();
  state_->threads.clear();
  if (state_->source() && state_->options.peers) state_->options.peers->stop();
  // Batches give their memory back to the state, which must still be whole.
  const auto batches = std::move(state_->batches);
}

std::shared_ptr<const LoadedBatch> Loader::load(int64_t epoch, int64_t step) {
  State& state = *state_;
  const Step wanted{epoch, step};
  if (state.sampler.slice(step, state.options.rank).size() == 0)
    return std::make_shared<const LoadedBatch>(LoadedBatch{.epoch = epoch, .step = step});

  std::map<Step, std::shared_ptr<Batch>> dropped;  // after the lock
  std::shared_ptr<Batch> batch;
  const double begin = now_seconds();
  std::unique_lock lock(state.mutex);
  if (!state.started || state.expected != wanted) {
    ++state.generation;
    state.started = true;
    state.items.clear();
    state.to_read.clear();
    state.charged = 0;
    dropped.swap(state.batches);
    state.next = wanted;
    state.next_place = 0;
    state.extend();
    lock.unlock();
    dropped.clear();
    state.changed_for_decoders.notify_all();
    lock.lock();
  }
  const auto is_there = [&] {
    const auto found = state.batches.find(wanted);
    return found != state.batches.end() && found->second->left == 0;
  };
  if (!state.delivered.wait_for(lock, std::chrono::duration<double>(state.options.timeout_seconds),
                                is_there))
    throw Error(ErrorCode::data,
                fmt::format("step {} of epoch {} did not arrive within {}", step, epoch,
                            format_duration(state.options.timeout_seconds)),
                "check the storage that holds the data set");
  batch = state.batches.extract(wanted).mapped();
  Step following{epoch, step};
  do {
    if (++following.step == state.sampler.steps_per_epoch()) following = {following.epoch + 1, 0};
  } while (state.sampler.slice(following.step, state.options.rank).size() == 0);
  state.expected = following;
  state.statistics.samples += batch->view.samples;
  state.statistics.wait_seconds += now_seconds() - begin;
  lock.unlock();
  if (!batch->errors.empty()) std::rethrow_exception(batch->errors.begin()->second);
  return {batch, &batch->view};
}

LoaderStatistics Loader::statistics() const {
  const std::lock_guard lock(state_->mutex);
  return state_->statistics;
}

int64_t Loader::steps_per_epoch() const {
  return state_->sampler.steps_per_epoch();
}

}  // namespace renkei::data
