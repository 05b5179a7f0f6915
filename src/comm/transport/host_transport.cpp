#include "comm/transport/host_transport.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <deque>
#include <fstream>
#include <list>
#include <map>
#include <mutex>
#include <optional>

#include "base/error.h"
#include "comm/collectives/exchange.h"
#include "comm/shared_memory/memory_file.h"

namespace renkei::comm {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kPipeBytes = 256 << 10;
constexpr double kLookSeconds = 0.02;

struct Head {
  int64_t tag = 0;
  uint64_t bytes = 0;
};

// One writes, one reads. Zero bytes are an empty pipe.
struct Pipe {
  alignas(kLine) std::atomic<uint64_t> written;
  alignas(kLine) std::atomic<uint64_t> read;
  alignas(kLine) std::byte data[kPipeBytes];

  // As much as there is room for, or there is; returns how much.
  size_t write(const std::byte* from, size_t bytes) {
    const uint64_t at = written.load(std::memory_order_relaxed);
    const size_t room = kPipeBytes - (at - read.load(std::memory_order_acquire));
    const size_t count = std::min(room, bytes);
    if (count == 0) return 0;
    const size_t begin = at % kPipeBytes, first = std::min(count, kPipeBytes - begin);
    std::memcpy(data + begin, from, first);
    if (count > first) std::memcpy(data, from + first, count - first);
    written.store(at + count, std::memory_order_release);
    return count;
  }
  size_t take(std::byte* into, size_t bytes) {
    const uint64_t at = read.load(std::memory_order_relaxed);
    const size_t there = written.load(std::memory_order_acquire) - at;
    const size_t count = std::min(there, bytes);
    if (count == 0) return 0;
    if (into) {  // null: nobody wants it
      const size_t begin = at % kPipeBytes, first = std::min(count, kPipeBytes - begin);
      std::memcpy(into, data + begin, first);
      if (count > first) std::memcpy(into + first, data, count - first);
    }
    read.store(at + count, std::memory_order_release);
    return count;
  }
};

struct Sending {
  Head head;
  const std::byte* data = nullptr;
  size_t sent = 0;  // of head and bytes
  bool done() const { return sent == sizeof(Head) + head.bytes; }
};

struct Receiving {
  std::span<std::byte> into;
  bool matched = false, done = false, cancelled = false;
  std::optional<uint64_t> wrong_bytes;  // what came instead
};

// A message that is coming in, or came before anyone asked for it.
struct Message {
  std::vector<std::byte> kept;
  bool complete = false;
  std::shared_ptr<Receiving> taker;  // asked for it while it was coming in
};

struct Peer {
  Pipe* to = nullptr;
  Pipe* from = nullptr;
  pid_t process = 0;
  std::deque<std::shared_ptr<Sending>> sending;
  std::map<int64_t, std::deque<std::shared_ptr<Receiving>>> receiving;  // by tag
  std::map<int64_t, std::deque<std::shared_ptr<Message>>> arrived;      // by tag

  // Of the message that is coming in.
  Head head;
  size_t head_bytes = 0, body_bytes = 0;
  std::shared_ptr<Receiving> target;  // null: kept in `message`
  std::shared_ptr<Message> message;
};

class HostRegion : public SharedRegion {
 public:
  HostRegion(MemoryFile mine, std::span<const MemoryFile> all)
      : mine_(std::move(mine)), map_(all), bytes_(mine_.bytes()) {}
  std::span<std::byte> part(int local_rank) const override {
    return {map_.data() + static_cast<size_t>(local_rank) * bytes_, bytes_};
  }

 private:
  MemoryFile mine_;  // the others have it by its number
  MemoryMap map_;
  size_t bytes_;
};

std::span<const std::byte> bytes_of(const MemoryHandle& handle) {
  return std::as_bytes(std::span(&handle, 1));
}

class HostTransport : public Transport {
 public:
  HostTransport(int rank, int size, const Rendezvous& rendezvous, HostTransportOptions options)
      : rank_(rank),
        options_(std::move(options)),
        inbox_(MemoryFile::create(static_cast<size_t>(size) * sizeof(Pipe))),
        inbox_map_(inbox_),
        peers_(static_cast<size_t>(size)),
        looked_(std::make_unique<std::atomic<double>[]>(peers_.size())) {
    const MemoryHandle mine = inbox_.handle();
    rendezvous.put(key_of(rank), fmt::format("{} {} {}", mine.process, mine.file, mine.bytes));
    for (int other = 0; other < size; ++other) {
      if (other == rank) continue;
      MemoryHandle theirs;
      const std::string text = rendezvous.get(key_of(other), other);
      if (std::sscanf(text.c_str(), "%d %d %zu", &theirs.process, &theirs.file, &theirs.bytes) != 3)
        throw Error(ErrorCode::bug, fmt::format("rank {} says '{}'", other, text));
      outboxes_.push_back(std::make_unique<MemoryMap>(MemoryFile::open(theirs)));
      Peer& peer = peers_[static_cast<size_t>(other)];
      peer.process = theirs.process;
      peer.to = pipe(outboxes_.back()->data(), rank);
      peer.from = pipe(inbox_map_.data(), other);
    }
    // Nobody may end before all have opened what is only known by its process.
    rendezvous.put("ready" + key_of(rank), "1");
    for (int other = 0; other < size; ++other)
      if (other != rank) rendezvous.get("ready" + key_of(other), other);
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(peers_.size()); }
  const std::string& host(int /*rank*/) const override { return options_.host; }
  int job_rank(int rank) const override {
    return options_.job_ranks.empty() ? rank : options_.job_ranks.at(static_cast<size_t>(rank));
  }

  Request send(int to, std::span<const std::byte> bytes, int tag) override {
    const std::lock_guard lock(mutex_);
    if (to == rank_) {
      deliver_to_self(bytes, tag);
      return {};
    }
    Peer& peer = this->peer(to);
    auto sending = std::make_shared<Sending>();
    sending->head = {.tag = tag, .bytes = bytes.size()};
    sending->data = bytes.data();
    peer.sending.push_back(sending);
    push(peer);
    if (sending->done()) return {};
    return Request(std::make_unique<SendState>(*this, to, std::move(sending)));
  }

  Request receive(int from, std::span<std::byte> bytes, int tag) override {
    const std::lock_guard lock(mutex_);
    Peer& peer = this->peer(from);
    auto receiving = std::make_shared<Receiving>();
    receiving->into = bytes;
    auto& waiting = peer.arrived[tag];
    if (!waiting.empty()) {
      receiving->matched = true;
      if (waiting.front()->complete)
        hand_over(*waiting.front(), *receiving);
      else
        waiting.front()->taker = receiving;
      waiting.pop_front();
    } else {
      peer.receiving[tag].push_back(receiving);
    }
    return Request(std::make_unique<ReceiveState>(*this, from, std::move(receiving)));
  }

  int sender_of_next(int tag) override {
    const std::lock_guard lock(mutex_);
    progress();
    for (int rank = 0; rank < size(); ++rank) {
      const auto& arrived = peers_[static_cast<size_t>(rank)].arrived;
      if (const auto found = arrived.find(tag); found != arrived.end() && !found->second.empty())
        return rank;
    }
    return -1;
  }

  bool done(Request& request) override {
    if (!request.state()) return true;
    const std::lock_guard lock(mutex_);
    progress();
    return static_cast<State*>(request.state())->is_done();
  }

  void wait(Request& request, const Call& call) override {
    if (!request.state()) return;
    const auto& state = static_cast<const State&>(*request.state());
    const double begin = clock().seconds();
    for (int64_t turn = 0; !done(request); ++turn) {
      if (turn < 2000) {
        sched_yield();
      } else {
        const timespec pause{0, 50'000};
        nanosleep(&pause, nullptr);
      }
      // Its last message may have come between the two looks.
      if (turn % 64 == 63 && has_ended(state.peer) && !done(request)) throw_ended(state.peer, call);
      if (clock().seconds() - begin > call.timeout_seconds) throw_timeout(*this, state.peer, call);
    }
    const std::optional<uint64_t> wrong = state.wrong_bytes();
    const size_t expected = state.expected_bytes();
    const int peer = state.peer;
    request = Request();
    if (wrong) throw_sizes_differ(*this, peer, expected, *wrong, call);
  }

  std::shared_ptr<SharedRegion> make_region(const std::vector<int>& ranks, size_t bytes) override {
    const Call call{.operation = "creation of shared memory"};
    MemoryFile mine = MemoryFile::create(std::max<size_t>(bytes, 1));
    const MemoryHandle handle = mine.handle();
    std::vector<MemoryHandle> handles(ranks.size());
    std::vector<Request> receiving, sending;
    constexpr int kTag = static_cast<int>(Tag::share);
    for (size_t i = 0; i < ranks.size(); ++i)
      if (ranks[i] != rank_)
        receiving.push_back(
            receive(ranks[i], std::as_writable_bytes(std::span(&handles[i], 1)), kTag));
    for (const int other : ranks)
      if (other != rank_) sending.push_back(send(other, bytes_of(handle), kTag));
    for (Request& request : receiving) wait(request, call);
    for (Request& request : sending) wait(request, call);
    std::vector<MemoryFile> files;
    for (size_t i = 0; i < ranks.size(); ++i)
      files.push_back(MemoryFile::open(ranks[i] == rank_ ? handle : handles[i]));
    auto region = std::make_shared<HostRegion>(std::move(mine), files);
    // As long as someone may still open it, nobody leaves.
    for (size_t i = 0; i < ranks.size(); ++i)
      if (ranks[i] != rank_) exchange(*this, ranks[i], {}, ranks[i], {}, Tag::share, call);
    return region;
  }

  bool has_ended(int rank) const override {
    const Peer& peer = peers_[static_cast<size_t>(rank)];
    if (rank == rank_ || peer.process == 0) return false;
    // A look into a file: not more often than anyone would notice.
    std::atomic<double>& looked = looked_[static_cast<size_t>(rank)];
    const double now = clock().seconds();
    if (now - looked.load(std::memory_order_relaxed) < kLookSeconds) return false;
    looked.store(now, std::memory_order_relaxed);
    // "123 (python) Z …": the name may hold anything but ends with the last parenthesis.
    std::ifstream file(fmt::format("/proc/{}/stat", peer.process));
    std::string text;
    if (!std::getline(file, text)) return true;
    const size_t name = text.rfind(')');
    return name != std::string::npos && name + 2 < text.size() &&
           (text[name + 2] == 'Z' || text[name + 2] == 'X');
  }

 private:
  struct State : Request::State {
    State(HostTransport& transport, int peer) : transport(transport), peer(peer) {}
    virtual bool is_done() const = 0;
    virtual size_t expected_bytes() const { return 0; }
    virtual std::optional<uint64_t> wrong_bytes() const { return {}; }
    HostTransport& transport;
    int peer;
  };
  struct SendState : State {
    SendState(HostTransport& transport, int peer, std::shared_ptr<Sending> sending)
        : State(transport, peer), sending(std::move(sending)) {}
    ~SendState() override {
      const std::lock_guard lock(transport.mutex_);
      if (sending->done()) return;
      auto& queue = transport.peer(peer).sending;
      if (sending->sent == 0)
        std::erase(queue, sending);
      else  // the head is on its way, but the bytes may be gone: nothing more can be sent there
        queue.clear(), transport.peer(peer).to = nullptr;
    }
    bool is_done() const override { return sending->done(); }
    std::shared_ptr<Sending> sending;
  };
  struct ReceiveState : State {
    ReceiveState(HostTransport& transport, int peer, std::shared_ptr<Receiving> receiving)
        : State(transport, peer), receiving(std::move(receiving)) {}
    // After an error the memory may be gone before the message comes.
    ~ReceiveState() override {
      const std::lock_guard lock(transport.mutex_);
      if (receiving->done) return;
      receiving->cancelled = true;
      for (auto& [tag, queue] : transport.peer(peer).receiving) std::erase(queue, receiving);
    }
    bool is_done() const override { return receiving->done; }
    size_t expected_bytes() const override { return receiving->into.size(); }
    std::optional<uint64_t> wrong_bytes() const override { return receiving->wrong_bytes; }
    std::shared_ptr<Receiving> receiving;
  };

  static std::string key_of(int rank) { return fmt::format("renkei/{}", rank); }
  static Pipe* pipe(std::byte* inbox, int sender) {
    static_assert(std::atomic<uint64_t>::is_always_lock_free, "locks of a process are not shared");
    return reinterpret_cast<Pipe*>(inbox) + sender;
  }

  Peer& peer(int rank) {
    if (rank < 0 || rank >= size())
      throw Error(ErrorCode::bug, fmt::format("there is no rank {} among {} ranks", rank, size()));
    return peers_[static_cast<size_t>(rank)];
  }

  [[noreturn]] void throw_ended(int rank, const Call& call) const {
    Timeout error(ErrorCode::communication,
                  fmt::format("{} has ended, and {} waits for it in {}", name_of_rank(*this, rank),
                              name_of_rank(*this, rank_), call.operation),
                  "look at the log of the rank that has ended");
    error.rank = job_rank(rank);
    error.host = host(rank);
    throw error;
  }

  void deliver_to_self(std::span<const std::byte> bytes, int tag) {
    Peer& peer = this->peer(rank_);
    auto message = std::make_shared<Message>();
    message->kept.assign(bytes.begin(), bytes.end());
    message->complete = true;
    if (auto& asked = peer.receiving[tag]; !asked.empty()) {
      hand_over(*message, *asked.front());
      asked.pop_front();
    } else {
      peer.arrived[tag].push_back(std::move(message));
    }
  }

  static void hand_over(const Message& message, Receiving& receiving) {
    if (message.kept.size() != receiving.into.size())
      receiving.wrong_bytes = message.kept.size();
    else if (!receiving.cancelled)
      std::ranges::copy(message.kept, receiving.into.begin());
    receiving.done = true;
  }

  void progress() {
    for (Peer& peer : peers_) {
      if (peer.to) push(peer);
      if (peer.from) pull(peer);
    }
  }

  static void push(Peer& peer) {
    while (!peer.sending.empty() && peer.to) {
      Sending& next = *peer.sending.front();
      if (next.sent < sizeof(Head))
        next.sent += peer.to->write(reinterpret_cast<const std::byte*>(&next.head) + next.sent,
                                    sizeof(Head) - next.sent);
      if (next.sent >= sizeof(Head) && !next.done())
        next.sent += peer.to->write(next.data + (next.sent - sizeof(Head)),
                                    next.head.bytes - (next.sent - sizeof(Head)));
      if (!next.done()) return;
      peer.sending.pop_front();
    }
  }

  static void pull(Peer& peer) {
    while (true) {
      if (peer.head_bytes < sizeof(Head)) {
        peer.head_bytes +=
            peer.from->take(reinterpret_cast<std::byte*>(&peer.head) + peer.head_bytes,
                            sizeof(Head) - peer.head_bytes);
        if (peer.head_bytes < sizeof(Head)) return;
        begin_message(peer);
      }
      pull_body(peer);
      if (peer.body_bytes < peer.head.bytes) return;
      end_message(peer);
    }
  }

  static void begin_message(Peer& peer) {
    peer.body_bytes = 0;
    peer.target = nullptr;
    peer.message = nullptr;
    auto& asked = peer.receiving[peer.head.tag];
    if (!asked.empty()) {
      peer.target = asked.front();
      peer.target->matched = true;
      if (peer.target->into.size() != peer.head.bytes) peer.target->wrong_bytes = peer.head.bytes;
      asked.pop_front();
      return;
    }
    peer.message = std::make_shared<Message>();
    peer.message->kept.resize(peer.head.bytes);
    peer.arrived[peer.head.tag].push_back(peer.message);
  }

  static void pull_body(Peer& peer) {
    while (peer.body_bytes < peer.head.bytes) {
      std::byte* into = nullptr;
      if (peer.message) into = peer.message->kept.data() + peer.body_bytes;
      if (peer.target && !peer.target->cancelled && !peer.target->wrong_bytes)
        into = peer.target->into.data() + peer.body_bytes;
      const size_t taken = peer.from->take(into, peer.head.bytes - peer.body_bytes);
      if (taken == 0) return;
      peer.body_bytes += taken;
    }
  }

  static void end_message(Peer& peer) {
    peer.head_bytes = 0;
    if (peer.target) peer.target->done = true;
    if (peer.message) {
      peer.message->complete = true;
      if (peer.message->taker) hand_over(*peer.message, *peer.message->taker);
    }
    peer.target = nullptr;
    peer.message = nullptr;
  }

  int rank_;
  HostTransportOptions options_;
  MemoryFile inbox_;
  MemoryMap inbox_map_;
  std::vector<std::unique_ptr<MemoryMap>> outboxes_;
  std::mutex mutex_;
  std::vector<Peer> peers_;
  std::unique_ptr<std::atomic<double>[]> looked_;  // when a rank was last seen alive
};

}  // namespace

std::unique_ptr<Transport> make_host_transport(int rank, int size, const Rendezvous& rendezvous,
                                               const HostTransportOptions& options) {
  return std::make_unique<HostTransport>(rank, size, rendezvous, options);
}

}  // namespace renkei::comm
