// Batches in the order of the sampler, ready before they are asked for.
//
//   positions of this rank, in the order of delivery
//        │  reader threads: cache, or pread of several samples at once
//        ▼
//   bytes, up to a limit        ──►  decoder threads, in the same order
//                                          │
//                                          ▼
//                                    batches, two or more  ──►  load()
//
// Of each sample only those fields are read and decoded that were asked for. What comes out depends
// on (seed, epoch, step) only, never on threads, ranks or a restart: load() may begin anywhere.
// Memory is bounded by one setting, which covers batches, bytes that were read ahead and the cache.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/sampler.h"

namespace renkei::data {

class PeerCache;

enum class BadSamples { stop, skip };

struct LoaderOptions {
  int rank = 0;
  int threads = 1;  // that decode
  int readers = 4;  // that wait for storage
  int64_t memory_bytes = int64_t{1} << 30;
  bool cache = true;                               // keep samples in what memory is left
  int64_t disk_cache_bytes = 0;                    // and, beyond that, on a local disk
  std::string cache_directory = {};                // empty: $TMPDIR or /tmp
  BadSamples bad_samples = BadSamples::stop;       // skip: another sample takes the place
  uint64_t seed = 1;                               // which one
  double timeout_seconds = 300;                    // for one batch; storage may hang
  int64_t epochs = 0;                              // nothing is read ahead beyond; 0: without end
  int64_t run = 1;                                 // for the sampler: neighbours that stay together
  bool share_cache = false;                        // ranks keep samples for each other,
  PeerCache* peers = nullptr;                      // by way of this
  std::optional<std::vector<size_t>> fields = {};  // of the data set; all, unless given
  // Fields that other ranks load of the same samples. With bad_samples = skip they are read here as
  // well: where one rank takes another sample, all have to.
  std::vector<size_t> fields_elsewhere = {};
};

// One field of all samples of a batch, one after the other.
struct LoadedField {
  const Field* field = nullptr;
  std::span<const std::byte> bytes;

  // As numbers of its type.
  template <typename T>
  std::span<const T> as() const {
    check_width(sizeof(T));
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }

 private:
  void check_width(size_t bytes_of_number) const;
};

struct LoadedBatch {
  int64_t epoch = 0;
  int64_t step = 0;
  int64_t samples = 0;
  std::vector<LoadedField> fields = {};  // those asked for, in that order
};

struct LoaderStatistics {
  int64_t samples = 0;                         // delivered
  int64_t bytes = 0;                           // of them, as stored
  int64_t cache_hits = 0;                      // of records
  double wait_seconds = 0;                     // that load() spent waiting
  std::map<int64_t, std::string> bad_samples;  // those skipped, with the reason
};

class Loader {
 public:
  // The data set must outlive the loader, and the loader the batches. A usage Error says how much
  // memory two batches need when that is more than allowed.
  Loader(const Dataset& dataset, const Sampler& sampler, const LoaderOptions& options);
  // Communicates with nobody: what peers want of this rank afterwards, they do not get.
  ~Loader();
  // At an orderly end of all ranks that share their caches: goes on serving until none needs any.
  void close();
  Loader(const Loader&) = delete;

  // Waits for a batch. Asked for in order, batches are ready; any other one may be asked for, and
  // the order goes on from there. The memory is used again when the last copy of the pointer is
  // gone. What went wrong with a sample is thrown here, by the first one in the batch.
  std::shared_ptr<const LoadedBatch> load(int64_t epoch, int64_t step);

  LoaderStatistics statistics() const;
  int64_t steps_per_epoch() const;
  // Batches that there is memory for: who keeps as many waits for the next one in vain.
  int64_t buffers() const;

 private:
  struct State;
  void stop_threads();
  std::unique_ptr<State> state_;
};

// The sample that takes the place of a bad one, at the `attempt`-th time, 0 first.
int64_t replacement_for(uint64_t seed, int64_t epoch, int64_t position, int attempt, int64_t count);

}  // namespace renkei::data
