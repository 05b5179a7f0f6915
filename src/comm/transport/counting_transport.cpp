#include "comm/transport/counting_transport.h"

#include <algorithm>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <utility>

#include "base/error.h"
#include "comm/transport/fiber.h"

namespace renkei::comm {
namespace {

struct Message {
  size_t bytes;
  std::unique_ptr<std::byte[]> content;  // null: it has none
};

struct Transfer;

// What goes from one rank to another under one tag. At most one of the two lists has something.
struct Channel {
  std::deque<Message> early;     // nobody has posted a receive for them
  std::deque<Transfer*> posted;  // nothing has been sent for them
};

struct Transfer : Request::State {
  ~Transfer() override {
    if (!done) std::erase(channel->posted, this);
  }
  void complete(size_t bytes, const std::byte* content) {
    done = true;
    arrived = bytes;
    if (content && into.data() && bytes == into.size()) std::copy_n(content, bytes, into.data());
  }

  int peer = 0;
  std::span<std::byte> into;
  Channel* channel = nullptr;
  bool done = false;
  size_t arrived = 0;  // bytes
};

class CountingClock : public Clock {
 public:
  double seconds() const override { return now; }
  double now = 0;
};

struct Rank {
  std::unique_ptr<Fiber> fiber;
  std::map<std::pair<int, int>, Channel> inbox;  // by (from, tag); references stay valid
  Traffic traffic;
  const Transfer* awaited = nullptr;  // null: it can run
  double deadline = 0;                // of the wait
};

struct World {
  explicit World(int size) : ranks(static_cast<size_t>(size)) {}

  void make_runnable(int rank) { runnable.push_back(rank); }
  // The rank waits, and now need not.
  void wake(int rank) {
    ranks[static_cast<size_t>(rank)].awaited = nullptr;
    make_runnable(rank);
  }
  // Nobody can go on: the first deadline passes.
  void pass_time() {
    auto first = ranks.end();
    for (auto rank = ranks.begin(); rank != ranks.end(); ++rank)
      if (rank->awaited && (first == ranks.end() || rank->deadline < first->deadline)) first = rank;
    clock.now = std::max(clock.now, first->deadline);
    wake(static_cast<int>(first - ranks.begin()));
  }
  // Keeps the first failure only: the later ones are its consequences.
  void fail(int rank, std::exception_ptr exception) {
    if (failed_rank >= 0) return;
    failed_rank = rank;
    failure = std::move(exception);
    for (size_t waiting = 0; waiting < ranks.size(); ++waiting)
      if (ranks[waiting].awaited) wake(static_cast<int>(waiting));
  }

  std::vector<Rank> ranks;
  std::vector<std::string> hosts;
  std::deque<int> runnable;
  CountingClock clock;
  int failed_rank = -1;
  std::exception_ptr failure;
};

class CountingTransport : public Transport {
 public:
  CountingTransport(World& world, int rank)
      : world_(world), rank_(rank), me_(world.ranks[static_cast<size_t>(rank)]) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(world_.ranks.size()); }
  const std::string& host(int rank) const override { return world_.hosts[checked(rank)]; }
  const Clock& clock() const override { return world_.clock; }

  // Complete at once.
  Request send(int to, std::span<const std::byte> bytes, int tag) override {
    Rank& receiver = world_.ranks[checked(to)];
    ++me_.traffic.messages_sent;
    me_.traffic.bytes_sent += static_cast<int64_t>(bytes.size());
    Channel& channel = receiver.inbox[{rank_, tag}];
    if (channel.posted.empty()) {
      Message message{bytes.size(), nullptr};
      if (bytes.data() && !bytes.empty()) {
        message.content = std::make_unique_for_overwrite<std::byte[]>(bytes.size());
        std::ranges::copy(bytes, message.content.get());
      }
      channel.early.push_back(std::move(message));
      return {};
    }
    Transfer& transfer = *channel.posted.front();
    channel.posted.pop_front();
    transfer.complete(bytes.size(), bytes.data());
    if (receiver.awaited == &transfer) world_.wake(to);
    return {};
  }

  Request receive(int from, std::span<std::byte> bytes, int tag) override {
    Channel& channel = me_.inbox[{static_cast<int>(checked(from)), tag}];
    auto transfer = std::make_unique<Transfer>();
    transfer->peer = from;
    transfer->into = bytes;
    transfer->channel = &channel;
    if (channel.early.empty()) {
      channel.posted.push_back(transfer.get());
    } else {
      const Message& message = channel.early.front();
      transfer->complete(message.bytes, message.content.get());
      channel.early.pop_front();
    }
    return Request(std::move(transfer));
  }

  void wait(Request& request, const Call& call) override {
    if (!request.state()) return;
    auto& transfer = static_cast<Transfer&>(*request.state());
    if (!transfer.done && world_.failed_rank < 0) {
      me_.awaited = &transfer;
      me_.deadline = world_.clock.now + call.timeout_seconds;
      me_.fiber->suspend();
    }
    if (!transfer.done && world_.failed_rank >= 0) throw_failed(*this, world_.failed_rank, call);
    if (!transfer.done) throw_timeout(*this, transfer.peer, call);
    if (transfer.arrived != transfer.into.size())
      throw_sizes_differ(*this, transfer.peer, transfer.into.size(), transfer.arrived, call);
    ++me_.traffic.messages_received;
    me_.traffic.bytes_received += static_cast<int64_t>(transfer.arrived);
    request = Request();
  }

  // Lets the others run first: who asks again and again would keep them from it.
  bool done(Request& request) override {
    if (!request.state()) return true;
    const auto& transfer = static_cast<const Transfer&>(*request.state());
    if (!transfer.done) {
      if (world_.failed_rank >= 0) throw_failed(*this, world_.failed_rank, {});
      world_.make_runnable(rank_);
      me_.fiber->suspend();
    }
    return transfer.done;
  }

 private:
  size_t checked(int rank) const {
    if (rank < 0 || rank >= size())
      throw Error(ErrorCode::bug, fmt::format("there is no rank {} among {} ranks", rank, size()));
    return static_cast<size_t>(rank);
  }

  World& world_;
  int rank_;
  Rank& me_;
};

}  // namespace

std::vector<Traffic> run_counting(int ranks, const std::function<void(Transport&)>& body,
                                  const CountingOptions& options) {
  check_ranks_and_hosts(ranks, options.hosts);
  World world(ranks);
  world.hosts = options.hosts;
  if (world.hosts.empty()) world.hosts.assign(static_cast<size_t>(ranks), "counting-host");
  for (int rank = 0; rank < ranks; ++rank) {
    const auto run = [&world, &body, rank] {
      try {
        CountingTransport transport(world, rank);
        body(transport);
      } catch (...) {
        world.fail(rank, std::current_exception());
      }
    };
    world.ranks[static_cast<size_t>(rank)].fiber =
        std::make_unique<Fiber>(options.stack_bytes, run);
    world.make_runnable(rank);
  }
  for (int ended = 0; ended < ranks;) {
    if (world.runnable.empty()) world.pass_time();
    Fiber& fiber = *world.ranks[static_cast<size_t>(world.runnable.front())].fiber;
    world.runnable.pop_front();
    fiber.resume();
    if (fiber.ended()) ++ended;
  }
  if (world.failure) std::rethrow_exception(world.failure);
  std::vector<Traffic> traffic;
  for (const Rank& rank : world.ranks) traffic.push_back(rank.traffic);
  return traffic;
}

}  // namespace renkei::comm
