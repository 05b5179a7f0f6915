// Memory of a process for large blocks that the other ranks of its host can be let into.
//
// A range of addresses is reserved and a memory file of the same length made. At first the range is
// ordinary private memory. When a block is to be shared, its pages are copied to the same place of
// the file and the file is mapped over them: the addresses stay, and whoever maps the file finds
// the block at its offset. Shared pages stay shared when their block is freed, so that a program
// which reduces tensors of the same sizes again and again pays once. What is never shared costs
// nothing.
//
// A block starts on a page, a few cache lines (the skew) after its beginning, and no page has two
// blocks: only the bytes of the shared tensor move. A part of a block is shared if its pages hold
// nothing else, or are shared already: another thread may be writing to the rest.
//
// fork: a child sees shared pages as if they were private, as they were at the moment of the fork.
// So before a fork they become private again (copied back), unless a collective holds them (Hold);
// then the child copies them. A child shares nothing.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "comm/shared_memory/memory_file.h"

namespace renkei::comm {

struct ArenaOptions {
  size_t bytes = size_t{64} << 30;  // of addresses; memory is taken when it is touched
  // Buffers of several ranks whose addresses end with the same bits throw each other out of the
  // caches (shared_allreduce.cpp). A multiple of 64 below 4096.
  size_t skew_bytes = 0;
};

class Arena {
 public:
  // A memory Error when the system refuses. A process has as many as it likes.
  explicit Arena(const ArenaOptions& options);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Null when there is no room, or the block is empty. From any thread.
  void* allocate(size_t bytes);
  void release(void* data);
  bool owns(const void* data) const { return data >= base_ && data < base_ + page_count_ * kPage; }

  // Where others find these bytes, as an offset into the file; nothing when they cannot.
  std::optional<uint64_t> share(const void* data, size_t bytes);
  // The pages of these bytes, where they hold nothing else, become private with what they hold now:
  // what others do there from now on is not seen here any more.
  void withdraw(const void* data, size_t bytes);
  MemoryHandle handle() const { return file_->handle(); }
  size_t shared_bytes() const;  // now, for tests and people

  // While it lives, a fork leaves shared pages as they are.
  using Hold = std::shared_lock<std::shared_timed_mutex>;
  Hold hold() { return Hold(in_use_); }

  // For the handlers of fork().
  void before_fork();
  void after_fork(bool in_child);

 private:
  static constexpr size_t kPage = 4096;
  struct Block {
    size_t pages;
    size_t bytes;  // that were asked for
  };

  std::optional<std::pair<size_t, size_t>> pages_to_share(const std::byte* data,
                                                          size_t bytes) const;
  bool is_shared(size_t page) const { return shared_[page / 64] >> (page % 64) & 1; }
  void mark(size_t page, bool shared);
  bool share_pages(size_t first, size_t end);
  // Calls body(first, end) for each run of pages in [first, end) that are (not) shared.
  template <typename Body>
  bool for_runs(size_t first, size_t end, bool shared, Body body) const;
  void make_private(size_t from, size_t to, bool also_in_file);
  void add_free(size_t page, size_t pages);

  size_t page_count_;
  size_t skew_;
  std::byte* base_ = nullptr;
  std::unique_ptr<MemoryFile> file_;
  mutable std::mutex mutex_;
  std::shared_timed_mutex in_use_;
  std::map<size_t, Block> blocks_;               // by first page
  std::map<size_t, size_t> free_;                // pages by first page
  std::set<std::pair<size_t, size_t>> by_size_;  // (pages, first page) of the same
  std::vector<uint64_t> shared_;                 // a bit a page
  size_t shared_pages_ = 0;
  size_t used_end_ = 0;  // pages that ever were in a block end here
  bool is_child_ = false, copied_back_ = false;
  int copied_[2] = {-1, -1};  // a pipe by which a child says that it has its copy
};

}  // namespace renkei::comm
