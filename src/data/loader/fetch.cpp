#include "data/loader/fetch.h"

#include "data/loader/read_runs.h"

namespace renkei::data {
namespace {

// Reading a gap of this size takes less time than another request.
constexpr int64_t kGapBytes = 64 << 10;
constexpr int64_t kMostBytes = 8 << 20;

void keep(const Source& source, SampleCache& cache, FetchTask& task, std::string stored) {
  const std::string_view content = source.unwrap(task.sample, task.record, stored);
  if (content.size() != stored.size()) stored = std::string(content);
  task.result.bytes = std::make_shared<const std::string>(std::move(stored));
  cache.offer(cache_key(source, task.sample, task.record), task.result.bytes);
}

// Storage that did not answer, or refused, will do so again: unlike a bad sample, this is not worth
// another try for each of the samples that wait for it.
bool is_outage(const std::exception_ptr& error) {
  if (!error) return false;
  try {
    std::rethrow_exception(error);
  } catch (const Error& thrown) {
    return thrown.code != ErrorCode::data;
  } catch (...) {
    return false;
  }
}

void read_alone(const Source& source, SampleCache& cache, FetchTask& task) {
  try {
    if (task.where.file < 0) {
      task.result.bytes =
          std::make_shared<const std::string>(source.read(task.sample, task.record));
      cache.offer(cache_key(source, task.sample, task.record), task.result.bytes);
    } else {
      keep(source, cache, task,
           source.file(task.where.file)->read(task.where.offset, task.where.length));
    }
  } catch (...) {
    task.result.error = std::current_exception();
  }
}

void read_together(const Source& source, SampleCache& cache, std::span<FetchTask*> tasks,
                   const ReadRun& run) {
  std::string bytes;
  try {
    bytes = source.file(run.where.file)->read(run.where.offset, run.where.length);
  } catch (...) {
    // Alone, those that can be read are read, and the other ones have their own error.
    const std::exception_ptr error = std::current_exception();
    for (const size_t member : run.members)
      if (is_outage(error))
        tasks[member]->result.error = error;
      else
        read_alone(source, cache, *tasks[member]);
    return;
  }
  for (const size_t member : run.members) {
    FetchTask& task = *tasks[member];
    try {
      keep(source, cache, task,
           bytes.substr(static_cast<size_t>(task.where.offset - run.where.offset),
                        static_cast<size_t>(task.where.length)));
    } catch (...) {
      task.result.error = std::current_exception();
    }
  }
}

}  // namespace

void fetch(const Source& source, SampleCache& cache, std::span<FetchTask> tasks,
           const std::function<void(FetchTask&)>& done) {
  std::vector<FetchTask*> missing;
  std::vector<Location> places;
  for (FetchTask& task : tasks) {
    try {
      task.result.bytes = cache.find(cache_key(source, task.sample, task.record));
    } catch (...) {  // a peer that does not answer
      task.result.error = std::current_exception();
      done(task);
      continue;
    }
    task.result.from_cache = task.result.bytes != nullptr;
    if (!task.result.from_cache && task.where.file >= 0) {
      missing.push_back(&task);
      places.push_back(task.where);
      continue;
    }
    if (!task.result.from_cache) read_alone(source, cache, task);
    done(task);
  }
  std::exception_ptr outage;
  for (const ReadRun& run : plan_reads(places, kGapBytes, kMostBytes)) {
    if (outage)
      for (const size_t member : run.members) missing[member]->result.error = outage;
    else if (run.members.size() == 1)
      read_alone(source, cache, *missing[run.members[0]]);
    else
      read_together(source, cache, missing, run);
    if (is_outage(missing[run.members[0]]->result.error))
      outage = missing[run.members[0]]->result.error;
    for (const size_t member : run.members) done(*missing[member]);
  }
}

}  // namespace renkei::data
