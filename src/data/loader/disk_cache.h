#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace renkei::data {

// Samples on a local disk, up to a limit; what is in stays, for the reasons of SampleCache. One
// file without a name, which is gone when the process is, whatever ends it. What comes back is
// compared with a checksum: damage is a miss. A disk that is full is a cache that is full.
class DiskCache {
 public:
  // In $TMPDIR or /tmp where `directory` is empty. Takes 24 bytes of memory for each sample.
  DiskCache(int64_t samples, const std::string& directory, int64_t limit_bytes);
  ~DiskCache();
  DiskCache(const DiskCache&) = delete;

  std::shared_ptr<const std::string> find(int64_t sample) const;
  // Whether it is there afterwards.
  bool offer(int64_t sample, const std::string& bytes);

  int64_t bytes() const { return std::min(end_.load(), limit_bytes_); }

 private:
  struct Place {
    int64_t offset = -1;  // none
    int64_t length = 0;
    uint64_t checksum = 0;
  };
  static constexpr size_t kLocks = 64;

  int64_t limit_bytes_;
  int descriptor_ = -1;
  std::atomic<int64_t> end_ = 0;  // of what was written, or is being written
  std::atomic<bool> is_full_ = false;
  std::vector<Place> places_;
  mutable std::vector<std::mutex> locks_{kLocks};
};

}  // namespace renkei::data
