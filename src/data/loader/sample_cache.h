#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "data/loader/disk_cache.h"
#include "data/loader/peer_cache.h"

namespace renkei::data {

// Bytes of samples in memory, up to a limit; what is in stays. For data that is read once per
// epoch, in a new order each time, no policy has more hits: between two uses of a sample every
// other one is used about once, so replacing one by another gains nothing, and the least recently
// used one, which other caches throw out, is the next to be needed. With room for half of the data
// this cache serves half of the reads, LRU about one in seven.
class SampleCache {
 public:
  // What does not fit into memory goes to the disk, where there is one to go to. With peers, what
  // another rank keeps is asked of it and given to it.
  SampleCache(int64_t samples, int64_t limit_bytes, std::unique_ptr<DiskCache> disk = nullptr,
              PeerCache* peers = nullptr);

  std::shared_ptr<const std::string> find(int64_t sample) const;
  // Keeps it if there is room. The first one for a sample stays.
  void offer(int64_t sample, const std::shared_ptr<const std::string>& bytes);

  // Both on this rank only.
  std::shared_ptr<const std::string> find_here(int64_t sample) const;
  void keep(int64_t sample, const std::shared_ptr<const std::string>& bytes);
  // Not any more, once a sample found no place in memory nor on disk.
  bool has_room() const { return has_room_; }

  int64_t bytes() const { return bytes_; }  // of memory

 private:
  bool keep_in_memory(int64_t sample, const std::shared_ptr<const std::string>& bytes);

  static constexpr size_t kLocks = 64;

  int64_t limit_bytes_;
  std::atomic<int64_t> bytes_ = 0;
  std::vector<std::shared_ptr<const std::string>> kept_;  // empty if the limit is 0
  mutable std::vector<std::mutex> locks_{kLocks};
  std::unique_ptr<DiskCache> disk_;
  PeerCache* peers_;
  std::atomic<bool> has_room_ = true;
};

}  // namespace renkei::data
