#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "data/loader/sample_cache.h"
#include "data/source/source.h"

namespace renkei::data {

// The bytes of one record, or why there are none.
struct Fetched {
  std::shared_ptr<const std::string> bytes;
  std::exception_ptr error;
  bool from_cache = false;
};

struct FetchTask {
  int64_t sample = 0;
  int64_t record = 0;
  Location where;
  Fetched result;
};

// The number of a record among those of all samples: by it caches know it. It does not depend on
// which records a rank reads, so that ranks with different parts of a program can share a cache.
inline int64_t cache_key(const Source& source, int64_t sample, int64_t record) {
  return sample * source.records() + record;
}

// Reads several records from the cache or, neighbours at once, from storage. Never throws: a record
// that can't be read has its error, and the others are not affected. `done` hears of each one as
// soon as it is there.
void fetch(const Source& source, SampleCache& cache, std::span<FetchTask> tasks,
           const std::function<void(FetchTask&)>& done);

}  // namespace renkei::data
