#include "comm/shared_memory/arena.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/error.h"

namespace renkei::comm {
namespace {

// As the C library does with large pieces: their memory goes back to the system at once. Smaller
// ones wait for the next of their kind.
constexpr size_t kGivenBackBytes = size_t{32} << 20;

// fork() has handlers, but no way to take one away: they look at the arenas that there are.
struct Arenas {
  std::mutex mutex;
  std::vector<Arena*> all;
};
Arenas& arenas() {
  static auto* arenas = [] {
    auto* made = new Arenas;  // never destroyed: a fork may come at any time
    pthread_atfork(
        [] {
          Arenas& all = comm::arenas();
          all.mutex.lock();
          for (Arena* arena : all.all) arena->before_fork();
        },
        [] {
          Arenas& all = comm::arenas();
          for (Arena* arena : all.all) arena->after_fork(false);
          all.mutex.unlock();
        },
        [] {
          Arenas& all = comm::arenas();
          for (Arena* arena : all.all) arena->after_fork(true);
          all.mutex.unlock();
        });
    return made;
  }();
  return *arenas;
}

}  // namespace

Arena::Arena(const ArenaOptions& options)
    : page_count_(options.bytes / kPage), skew_(options.skew_bytes) {
  void* const place = ::mmap(nullptr, page_count_ * kPage, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED)
    throw Error(ErrorCode::memory,
                fmt::format("no {} bytes of addresses for memory that ranks could share: {}",
                            options.bytes, std::strerror(errno)),
                "a limit of the address space (ulimit -v) may be too small");
  base_ = static_cast<std::byte*>(place);
  try {
    file_ = std::make_unique<MemoryFile>(MemoryFile::create(page_count_ * kPage));
  } catch (...) {
    ::munmap(base_, page_count_ * kPage);
    throw;
  }
  shared_.resize(page_count_ / 64 + 1);
  add_free(0, page_count_);
  Arenas& all = arenas();
  const std::lock_guard lock(all.mutex);
  all.all.push_back(this);
}

Arena::~Arena() {
  Arenas& all = arenas();
  const std::lock_guard lock(all.mutex);
  std::erase(all.all, this);
  ::munmap(base_, page_count_ * kPage);
}

void* Arena::allocate(size_t bytes) {
  if (bytes == 0) return nullptr;
  const size_t pages = (bytes + skew_ + kPage - 1) / kPage;
  const std::lock_guard lock(mutex_);
  const auto found = by_size_.lower_bound({pages, 0});  // the smallest that is large enough
  if (found == by_size_.end()) return nullptr;
  const auto [length, page] = *found;
  by_size_.erase(found);
  free_.erase(page);
  if (length > pages) add_free(page + pages, length - pages);
  blocks_.emplace(page, Block{pages, bytes});
  used_end_ = std::max(used_end_, page + pages);
  return base_ + page * kPage + skew_;
}

void Arena::release(void* data) {
  const auto page = static_cast<size_t>(static_cast<std::byte*>(data) - base_) / kPage;
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(page);
  if (found == blocks_.end()) throw Error(ErrorCode::bug, "no block of the arena starts there");
  const size_t pages = found->second.pages;
  blocks_.erase(found);
  if (pages * kPage >= kGivenBackBytes)
    for_runs(page, page + pages, false, [&](size_t first, size_t end) {
      ::madvise(base_ + first * kPage, (end - first) * kPage, MADV_DONTNEED);
      return true;
    });
  add_free(page, pages);
}

// Joins it with its neighbours.
void Arena::add_free(size_t page, size_t pages) {
  auto next = free_.lower_bound(page);
  if (next != free_.end() && next->first == page + pages) {
    pages += next->second;
    by_size_.erase({next->second, next->first});
    next = free_.erase(next);
  }
  if (next != free_.begin())
    if (const auto before = std::prev(next); before->first + before->second == page) {
      page = before->first;
      pages += before->second;
      by_size_.erase({before->second, before->first});
      free_.erase(before);
    }
  free_.emplace(page, pages);
  by_size_.emplace(pages, page);
}

void Arena::mark(size_t page, bool shared) {
  const uint64_t bit = uint64_t{1} << (page % 64);
  if (shared)
    shared_[page / 64] |= bit, ++shared_pages_;
  else
    shared_[page / 64] &= ~bit, --shared_pages_;
}

template <typename Body>
bool Arena::for_runs(size_t first, size_t end, bool shared, Body body) const {
  const uint64_t skipped = shared ? 0 : ~uint64_t{0};  // words without such a page
  for (size_t page = first; page < end;) {
    if (page % 64 == 0 && page + 64 <= end && shared_[page / 64] == skipped) {
      page += 64;
      continue;
    }
    if (is_shared(page) != shared) {
      ++page;
      continue;
    }
    size_t behind = page + 1;
    while (behind < end && is_shared(behind) == shared) ++behind;
    if (!body(page, behind)) return false;
    page = behind;
  }
  return true;
}

// The pages that hold the bytes, if those that are private hold nothing else of a block.
std::optional<std::pair<size_t, size_t>> Arena::pages_to_share(const std::byte* data,
                                                               size_t bytes) const {
  const auto begin = static_cast<size_t>(data - base_), end = begin + bytes;
  const size_t first = begin / kPage, behind = (end + kPage - 1) / kPage;
  auto block = blocks_.upper_bound(first);
  if (block == blocks_.begin()) return {};
  --block;
  const size_t block_begin = block->first * kPage + skew_;
  const size_t block_end = block_begin + block->second.bytes;
  if (begin < block_begin || end > block_end) return {};
  if (begin != block_begin && begin % kPage != 0 && !is_shared(first)) return {};
  if (end != block_end && end % kPage != 0 && !is_shared(behind - 1)) return {};
  return std::pair(first, behind);
}

bool Arena::share_pages(size_t first, size_t end) {
  const size_t bytes = (end - first) * kPage;
  const auto offset = static_cast<off_t>(first * kPage);
  std::byte* const place = base_ + first * kPage;
  for (size_t done = 0; done < bytes;) {
    const ssize_t count = ::pwrite(file_->descriptor(), place + done, bytes - done,
                                   offset + static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<size_t>(count);
  }
  if (::mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE,
             file_->descriptor(), offset) == MAP_FAILED)
    return false;
  for (size_t page = first; page < end; ++page) mark(page, true);
  return true;
}

std::optional<uint64_t> Arena::share(const void* data, size_t bytes) {
  if (bytes == 0 || !owns(data)) return {};
  const auto* const begin = static_cast<const std::byte*>(data);
  const std::lock_guard lock(mutex_);
  if (is_child_) return {};
  const auto pages = pages_to_share(begin, bytes);
  if (!pages) return {};
  const bool done = for_runs(pages->first, pages->second, false,
                             [&](size_t first, size_t end) { return share_pages(first, end); });
  if (!done) return {};
  return static_cast<uint64_t>(begin - base_);
}

size_t Arena::shared_bytes() const {
  const std::lock_guard lock(mutex_);
  return shared_pages_ * kPage;
}

// The file keeps what it has: who is late reads what there was.
void Arena::withdraw(const void* data, size_t bytes) {
  if (bytes == 0 || !owns(data)) return;
  const auto begin = static_cast<size_t>(static_cast<const std::byte*>(data) - base_);
  const size_t end = begin + bytes;
  const std::lock_guard lock(mutex_);
  auto block = blocks_.upper_bound(begin / kPage);
  if (block == blocks_.begin()) return;
  --block;
  const size_t block_begin = block->first * kPage + skew_;
  const size_t block_end = block_begin + block->second.bytes;
  // Other threads may be writing to what is beside a part, on the same page.
  const size_t first = begin <= block_begin ? block->first : (begin + kPage - 1) / kPage;
  const size_t behind = end >= block_end ? block->first + block->second.pages : end / kPage;
  if (first < behind) make_private(first, behind, /*also_in_file=*/false);
}

void Arena::make_private(size_t from, size_t to, bool also_in_file) {
  for_runs(from, to, true, [&](size_t first, size_t end) {
    const size_t bytes = (end - first) * kPage;
    std::byte* const place = base_ + first * kPage;
    void* const copy =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED) return false;
    std::memcpy(copy, place, bytes);
    if (::mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, place) == MAP_FAILED)
      return false;
    for (size_t page = first; page < end; ++page) mark(page, false);
    if (also_in_file)
      ::fallocate(file_->descriptor(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  static_cast<off_t>(first * kPage), static_cast<off_t>(bytes));
    return true;
  });
}

void Arena::before_fork() {
  copied_back_ = false;
  if (is_child_) return mutex_.lock();
  // Peers may be at work in this memory; how long they take is not ours to say.
  copied_back_ = in_use_.try_lock_for(std::chrono::seconds(2));
  mutex_.lock();
  if (copied_back_)
    make_private(0, used_end_, /*also_in_file=*/true);
  else if (::pipe2(copied_, O_CLOEXEC) != 0)
    copied_[0] = copied_[1] = -1;
}

void Arena::after_fork(bool in_child) {
  const bool child_copies = !is_child_ && !copied_back_;
  if (in_child) {
    if (child_copies) make_private(0, used_end_, /*also_in_file=*/false);
    is_child_ = true;
  }
  if (child_copies && copied_[1] >= 0) {
    // The end of the writing side, here or there, says that the child has its copy.
    ::close(copied_[1]);
    char none = 0;
    if (!in_child)
      while (::read(copied_[0], &none, 1) < 0 && errno == EINTR) {
      }
    ::close(copied_[0]);
    copied_[0] = copied_[1] = -1;
  }
  mutex_.unlock();
  if (copied_back_) in_use_.unlock();
}

}  // namespace renkei::comm
