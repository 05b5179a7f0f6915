// Each rank has an inbox, and an inbox has a channel per (sender, tag). Sends and receives of a
// channel are numbered from 0 as they are posted: message k is for receive k, however late or in
// which order the receives are waited for. A send copies its bytes into the channel at once, so a
// message costs two copies and no memory of a rank is ever read by another.

#include "comm/transport/thread_transport.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/units.h"

namespace renkei::comm {
namespace {

struct Channel {
  int64_t sends = 0;  // posted so far
  int64_t receives = 0;
  std::map<int64_t, std::vector<std::byte>> messages;  // by number; not yet taken
};

struct Inbox {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::pair<int, int>, Channel> channels;  // by (from, tag); references stay valid
};

class ThreadSharedRegion : public SharedRegion {
 public:
  ThreadSharedRegion(size_t bytes, int parts) : bytes_(bytes), parts_(parts) {
    memory_ = mmap(nullptr, length(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED)
      throw Error(ErrorCode::memory,
                  fmt::format("no {} bytes of memory for {} ranks to share", length(), parts));
    madvise(memory_, length(), MADV_HUGEPAGE);
  }
  ~ThreadSharedRegion() override { munmap(memory_, length()); }
  ThreadSharedRegion(const ThreadSharedRegion&) = delete;
  ThreadSharedRegion& operator=(const ThreadSharedRegion&) = delete;

  std::span<std::byte> part(int local_rank) const override {
    if (local_rank < 0 || local_rank >= parts_)
      throw Error(ErrorCode::bug,
                  fmt::format("no part {} of {} of a shared memory", local_rank, parts_));
    return {static_cast<std::byte*>(memory_) + bytes_ * static_cast<size_t>(local_rank), bytes_};
  }

 private:
  size_t length() const { return bytes_ * static_cast<size_t>(parts_); }

  size_t bytes_;
  int parts_;
  void* memory_ = nullptr;
};

// The k-th memory that some ranks share: made by the first of them to ask, and kept here until the
// last has it.
struct Share {
  std::shared_ptr<ThreadSharedRegion> region;
  int takers = 0;
};

struct World {
  World(int ranks, const ThreadOptions& options)
      : hosts(options.hosts),
        rendezvous(options.rendezvous),
        clock(options.clock ? *options.clock : real_clock()),
        inboxes(ranks) {
    if (hosts.empty()) hosts.assign(ranks, "thread-host");
  }

  // Keeps the first failure only: the later ones are its consequences.
  void fail(int rank, std::exception_ptr exception) {
    int nobody = -1;
    if (!failed_rank.compare_exchange_strong(nobody, rank)) return;
    failure = std::move(exception);
    for (Inbox& inbox : inboxes) {
      // Through the lock, so that nobody is between looking at failed_rank and falling asleep.
      { std::lock_guard lock(inbox.mutex); }
      inbox.changed.notify_all();
    }
  }

  std::vector<std::string> hosts;
  bool rendezvous;
  const Clock& clock;
  std::vector<Inbox> inboxes;
  std::mutex shares_mutex;
  std::map<std::pair<std::vector<int>, int64_t>, Share> shares;  // by (ranks, k)
  std::atomic<int> failed_rank = -1;
  std::exception_ptr failure;  // written by the first rank that fails, read after the threads ended
};

struct Transfer : Request::State {
  int peer = 0;
  Channel* channel = nullptr;
  int64_t number = 0;
  bool sends = false;
  std::span<std::byte> into;  // of a receive
};

// Who sleeps looks at the clock so often, which may be another one than the system's.
constexpr double kSliceSeconds = 0.05;

class ThreadTransport : public Transport {
 public:
  ThreadTransport(World& world, int rank) : world_(world), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(world_.inboxes.size()); }
  const std::string& host(int rank) const override { return world_.hosts[checked(rank)]; }
  const Clock& clock() const override { return world_.clock; }

  Request send(int to, std::span<const std::byte> bytes, int tag) override {
    Inbox& inbox = world_.inboxes[checked(to)];
    std::vector<std::byte> message(bytes.data(), bytes.data() + bytes.size());
    auto transfer = std::make_unique<Transfer>();
    {
      std::lock_guard lock(inbox.mutex);
      Channel& channel = inbox.channels[{rank_, tag}];
      transfer->peer = to;
      transfer->channel = &channel;
      transfer->number = channel.sends++;
      transfer->sends = true;
      channel.messages.emplace(transfer->number, std::move(message));
    }
    inbox.changed.notify_all();
    return world_.rendezvous ? Request(std::move(transfer)) : Request();
  }

  Request receive(int from, std::span<std::byte> bytes, int tag) override {
    Inbox& inbox = world_.inboxes[rank_];
    auto transfer = std::make_unique<Transfer>();
    {
      std::lock_guard lock(inbox.mutex);
      Channel& channel = inbox.channels[{static_cast<int>(checked(from)), tag}];
      transfer->peer = from;
      transfer->channel = &channel;
      transfer->number = channel.receives++;
      transfer->into = bytes;
    }
    if (world_.rendezvous) inbox.changed.notify_all();
    return Request(std::move(transfer));
  }

  void wait(Request& request, const Call& call) override {
    if (request.state() == nullptr) return;
    auto& transfer = static_cast<Transfer&>(*request.state());
    if (transfer.sends)
      wait_for_send(transfer, call);
    else
      wait_for_receive(transfer, call);
    request = Request();
  }

  bool done(Request& request) override {
    if (request.state() == nullptr) return true;
    const auto& transfer = static_cast<const Transfer&>(*request.state());
    Inbox& inbox = world_.inboxes[transfer.sends ? transfer.peer : rank_];
    const std::lock_guard lock(inbox.mutex);
    return transfer.sends ? transfer.channel->receives > transfer.number
                          : transfer.channel->messages.contains(transfer.number);
  }

  std::shared_ptr<SharedRegion> make_region(const std::vector<int>& ranks, size_t bytes) override {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t padded = std::max<size_t>(1, (bytes + page - 1) / page) * page;
    const int takers = static_cast<int>(ranks.size());
    std::lock_guard lock(world_.shares_mutex);
    const auto [place, is_new] = world_.shares.try_emplace({ranks, shares_[ranks]++});
    Share& share = place->second;
    if (is_new) share.region = std::make_shared<ThreadSharedRegion>(padded, takers);
    const auto region = share.region;
    if (++share.takers == takers) world_.shares.erase(place);
    return region;
  }

 private:
  size_t checked(int rank) const {
    if (rank < 0 || rank >= size())
      throw Error(ErrorCode::bug, fmt::format("there is no rank {} among {} ranks", rank, size()));
    return static_cast<size_t>(rank);
  }

  template <typename Condition>
  void block_until(Condition condition, Inbox& inbox, std::unique_lock<std::mutex>& lock, int peer,
                   const Call& call) {
    const double end = clock().seconds() + call.timeout_seconds;
    while (!condition() && world_.failed_rank < 0) {
      const double left = end - clock().seconds();
      if (left <= 0) break;
      inbox.changed.wait_for(lock, std::chrono::duration<double>(std::min(left, kSliceSeconds)));
    }
    if (condition()) return;
    if (world_.failed_rank >= 0) throw_failed(*this, world_.failed_rank, call);
    throw_timeout(*this, peer, call);
  }

  void wait_for_send(const Transfer& transfer, const Call& call) {
    Inbox& inbox = world_.inboxes[transfer.peer];
    std::unique_lock lock(inbox.mutex);
    block_until([&] { return transfer.channel->receives > transfer.number; }, inbox, lock,
                transfer.peer, call);
  }

  void wait_for_receive(const Transfer& transfer, const Call& call) {
    Inbox& inbox = world_.inboxes[rank_];
    auto& messages = transfer.channel->messages;
    std::unique_lock lock(inbox.mutex);
    block_until([&] { return messages.contains(transfer.number); }, inbox, lock, transfer.peer,
                call);
    const auto taken = messages.extract(transfer.number);
    lock.unlock();
    const std::vector<std::byte>& message = taken.mapped();
    if (message.size() != transfer.into.size())
      throw_sizes_differ(*this, transfer.peer, transfer.into.size(), message.size(), call);
    std::copy(message.begin(), message.end(), transfer.into.begin());
  }

  World& world_;
  int rank_;
  std::map<std::vector<int>, int64_t> shares_;  // asked for so far, by who shares
};

void run_rank(World& world, int rank, const std::function<void(Transport&)>& body) {
  try {
    ThreadTransport transport(world, rank);
    body(transport);
  } catch (...) {
    world.fail(rank, std::current_exception());
  }
}

}  // namespace

void run_as_threads(int ranks, const std::function<void(Transport&)>& body,
                    const ThreadOptions& options) {
  check_ranks_and_hosts(ranks, options.hosts);
  World world(ranks, options);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    try {
      threads.emplace_back(run_rank, std::ref(world), rank, std::cref(body));
    } catch (...) {
      // The system has no thread left: the ranks that did start must not wait for this one.
      world.fail(rank, std::current_exception());
      break;
    }
  }
  for (std::thread& thread : threads) thread.join();
  if (world.failure) std::rethrow_exception(world.failure);
}

}  // namespace renkei::comm
