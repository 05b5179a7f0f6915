#include "data/loader/sample_cache.h"

namespace renkei::data {

SampleCache::SampleCache(int64_t samples, int64_t limit_bytes, std::unique_ptr<DiskCache> disk,
                         PeerCache* peers)
    // The table itself takes 16 bytes a sample.
    : limit_bytes_(limit_bytes - samples * static_cast<int64_t>(sizeof(kept_[0]))),
      disk_(std::move(disk)),
      peers_(peers) {
  if (limit_bytes_ > 0) kept_.resize(static_cast<size_t>(samples));
}

std::shared_ptr<const std::string> SampleCache::find(int64_t sample) const {
  return peers_ && !peers_->is_mine(sample) ? peers_->ask(sample) : find_here(sample);
}

void SampleCache::offer(int64_t sample, const std::shared_ptr<const std::string>& bytes) {
  if (peers_ && !peers_->is_mine(sample))
    peers_->give(sample, *bytes);
  else
    keep(sample, bytes);
}

std::shared_ptr<const std::string> SampleCache::find_here(int64_t sample) const {
  if (!kept_.empty()) {
    const auto place = static_cast<size_t>(sample);
    const std::lock_guard lock(locks_[place % kLocks]);
    if (kept_[place]) return kept_[place];
  }
  return disk_ ? disk_->find(sample) : nullptr;
}

bool SampleCache::keep_in_memory(int64_t sample, const std::shared_ptr<const std::string>& bytes) {
  if (kept_.empty()) return false;
  const auto size = static_cast<int64_t>(bytes->capacity());
  const auto place = static_cast<size_t>(sample);
  const std::lock_guard lock(locks_[place % kLocks]);
  if (kept_[place]) return true;
  if (bytes_.fetch_add(size) + size > limit_bytes_) {
    bytes_ -= size;
    return false;
  }
  kept_[place] = bytes;
  return true;
}

void SampleCache::keep(int64_t sample, const std::shared_ptr<const std::string>& bytes) {
  if (keep_in_memory(sample, bytes)) return;
  if (!disk_ || !disk_->offer(sample, *bytes)) has_room_ = false;
}

}  // namespace renkei::data
