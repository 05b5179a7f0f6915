#include "data/loader/loader.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <numeric>
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

using Buffer = std::vector<std::vector<std::byte>>;  // for each field

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
  int64_t sample = 0;
  std::vector<FetchTask> tasks;  // its records
  size_t unread = 0;             // of these
  std::exception_ptr error;      // before any could be read
  int64_t charged = 0;           // bytes it takes of the read-ahead
  int generation = 0;
};

struct Budget {
  int64_t batch_bytes = 0;
  int64_t batches = 0;
  int64_t read_ahead_bytes = 0;
  int64_t cache_bytes = 0;
};

void check_fields(const Dataset& dataset, std::span<const size_t> fields) {
  for (const size_t field : fields)
    if (field >= dataset.fields().size())
      throw Error(ErrorCode::bug,
                  fmt::format("a loader of field {} of {}", field, dataset.fields().size()));
}

std::vector<size_t> chosen_fields(const Dataset& dataset, const LoaderOptions& options) {
  std::vector<size_t> fields = options.fields.value_or(std::vector<size_t>());
  if (!options.fields) {
    fields.resize(dataset.fields().size());
    std::iota(fields.begin(), fields.end(), size_t{0});
  }
  check_fields(dataset, fields);
  return fields;
}

// These, and those that are only looked at to find bad samples.
std::vector<size_t> fields_to_read(const Dataset& dataset, std::vector<size_t> fields,
                                   const LoaderOptions& options) {
  check_fields(dataset, options.fields_elsewhere);
  if (options.bad_samples == BadSamples::skip)
    for (const size_t field : options.fields_elsewhere)
      if (std::ranges::count(fields, field) == 0) fields.push_back(field);
  return fields;
}

Budget divide_memory(const Dataset& dataset, std::span<const size_t> fields, bool uses_storage,
                     const Sampler& sampler, const LoaderOptions& options) {
  const int64_t samples = sampler.largest_slice();
  Budget budget;
  for (const size_t field : fields) budget.batch_bytes += samples * dataset.fields()[field].bytes();
  budget.batch_bytes = std::max<int64_t>(budget.batch_bytes, 1);
  const int64_t least = 2 * budget.batch_bytes + (int64_t{1} << 20);
  if (options.memory_bytes < least)
    throw Error(ErrorCode::usage,
                fmt::format("two batches of {} samples take {}, and the loader may have {}",
                            samples, format_size(least), format_size(options.memory_bytes)),
                "raise data.memory, or choose a smaller batch");
  budget.batches = std::clamp<int64_t>(options.memory_bytes / 2 / budget.batch_bytes, 2, 4);
  const int64_t rest = options.memory_bytes - budget.batches * budget.batch_bytes;
  if (!uses_storage) return budget;
  budget.read_ahead_bytes = options.cache ? std::min(rest / 2, kMostReadAhead) : rest;
  budget.cache_bytes = options.cache ? rest - budget.read_ahead_bytes : 0;
  return budget;
}

// Of all samples; in memory there are none.
int64_t record_count(const Dataset& dataset) {
  return dataset.source() ? dataset.count() * dataset.source()->records() : 0;
}

std::unique_ptr<DiskCache> make_disk_cache(const Dataset& dataset, bool uses_storage,
                                           const LoaderOptions& options) {
  if (!uses_storage || options.disk_cache_bytes <= 0) return nullptr;
  return std::make_unique<DiskCache>(record_count(dataset), options.cache_directory,
                                     options.disk_cache_bytes);
}

}  // namespace

void LoadedField::check_width(size_t bytes_of_number) const {
  if (static_cast<int64_t>(bytes_of_number) != bytes_of(field->dtype))
    throw Error(ErrorCode::bug, fmt::format("the field '{}' of {} was taken as numbers of {} bytes",
                                            field->name, name_of(field->dtype), bytes_of_number));
}

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
        fields(chosen_fields(dataset, options)),
        read_fields(fields_to_read(dataset, fields, options)),
        records(dataset.records_of(read_fields)),
        uses_storage(dataset.source() && (options.peers || !records.empty())),
        budget(divide_memory(dataset, fields, uses_storage, sampler, options)),
        cache(record_count(dataset), budget.cache_bytes,
              make_disk_cache(dataset, uses_storage, options),
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
           (items.empty() || records.empty() || charged < budget.read_ahead_bytes)) {
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
    item->sample = sampler.sample(next.epoch, item->position);
    try {
      for (const int64_t record : records) {
        const Location where = source()->locate(item->sample, record);
        item->tasks.push_back({.sample = item->sample, .record = record, .where = where});
        item->charged += where.length;
      }
    } catch (...) {
      item->error = std::current_exception();
      item->tasks.clear();
      item->charged = 0;
    }
    if (item->tasks.empty()) return item;
    item->unread = item->tasks.size();
    charged += item->charged;
    to_read.push_back(item);
    changed_for_readers.notify_one();
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
    batch.view = {step.epoch, step.step, samples};
    batch.buffer->resize(fields.size());
    for (size_t i = 0; i < fields.size(); ++i) {
      const Field& field = dataset.fields()[fields[i]];
      std::vector<std::byte>& bytes = (*batch.buffer)[i];
      bytes.resize(static_cast<size_t>(samples * field.bytes()));
      batch.view.fields.push_back({.field = &field, .bytes = bytes});
    }
  }

  // The first sample that is there, of the first batches that have memory. Batches get their memory
  // in the order of delivery, whether their samples are there or not: otherwise the last buffer
  // could go to a batch that is not the next to be asked for, and all would wait for ever.
  std::shared_ptr<Item> next_to_decode(std::shared_ptr<Batch>& batch) {
    const size_t end = std::min(items.size(), kLookPast);
    for (size_t i = 0; i < end; ++i) {
      batch = batch_of(*items[i]);
      if (!batch) return nullptr;
      if (items[i]->unread > 0) continue;
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
      std::vector<std::pair<Item*, size_t>> owners;  // of the tasks
      for (const auto& item : mine)
        for (size_t i = 0; i < item->tasks.size(); ++i) {
          tasks.push_back(item->tasks[i]);
          owners.emplace_back(item.get(), i);
        }
      fetch(*source(), cache, tasks, [&](FetchTask& task) {
        {
          const std::lock_guard guard(mutex);
          const auto [item, which] = owners[static_cast<size_t>(&task - tasks.data())];
          item->tasks[which].result = std::move(task.result);
          if (item->tasks[which].result.from_cache) ++statistics.cache_hits;
          if (--item->unread > 0) return;
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
      int64_t bytes = 0;
      for (FetchTask& task : item->tasks) {
        if (task.result.bytes) bytes += static_cast<int64_t>(task.result.bytes->size());
        task.result.bytes.reset();
      }
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
    int64_t sample = item.sample;
    for (int attempt = 0;; ++attempt) {
      try {
        if (attempt == 0)
          fill_with_fetched(item, batch);
        else
          dataset.read(sample, item.step.epoch, places_of(item, batch));
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

  // Where the fields of a sample go: into the batch, or nowhere.
  std::vector<FieldSpan> places_of(const Item& item, Batch& batch) const {
    static thread_local Buffer nowhere;
    nowhere.resize(read_fields.size());
    std::vector<FieldSpan> into(read_fields.size());
    for (size_t i = 0; i < read_fields.size(); ++i) {
      const auto size = static_cast<size_t>(dataset.fields()[read_fields[i]].bytes());
      const bool delivered = i < fields.size();
      if (!delivered) nowhere[i].resize(size);
      const size_t begin = delivered ? static_cast<size_t>(item.place) * size : 0;
      into[i] = {
          .field = read_fields[i],
          .bytes = std::span(delivered ? (*batch.buffer)[i] : nowhere[i]).subspan(begin, size)};
    }
    return into;
  }

  void fill_with_fetched(const Item& item, Batch& batch) const {
    if (item.error) std::rethrow_exception(item.error);
    const std::vector<FieldSpan> into = places_of(item, batch);
    if (!source()) return dataset.read(item.sample, item.step.epoch, into);
    std::vector<Record> fetched;
    for (const FetchTask& task : item.tasks) {
      if (task.result.error) std::rethrow_exception(task.result.error);
      fetched.push_back({.number = task.record, .bytes = *task.result.bytes});
    }
    dataset.decode(item.sample, item.step.epoch, fetched, into);
  }

  const Source* source() const { return dataset.source(); }

  const Dataset& dataset;
  const Sampler sampler;
  const LoaderOptions options;
  const std::vector<size_t> fields;       // of the data set, that are delivered,
  const std::vector<size_t> read_fields;  // and then those that are only looked at
  const std::vector<int64_t> records;     // of each sample, that all these need
  const bool uses_storage;                // or keeps what other ranks read from it
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
  for (int i = 0; !state.records.empty() && i < options.readers; ++i)
    state.threads.emplace_back([&state] { state.read(); });
  if (dataset.source() && options.peers) options.peers->serve(state.cache);
}

Loader::~Loader() {
  // Before the threads end: one may be waiting for the answer of a peer.
  if (state_->source() && state_->options.peers) state_->options.peers->abandon();
  stop_threads();
  // Batches give their memory back to the state, which must still be whole.
  const auto batches = std::move(state_->batches);
}

void Loader::stop_threads() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->changed_for_readers.notify_all();
  state_->changed_for_decoders.notify_all();
  state_->threads.clear();
}

void Loader::close() {
  stop_threads();
  if (state_->source() && state_->options.peers) state_->options.peers->close();
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

int64_t Loader::buffers() const {
  return state_->budget.batches;
}

int64_t Loader::steps_per_epoch() const {
  return state_->sampler.steps_per_epoch();
}

}  // namespace renkei::data
