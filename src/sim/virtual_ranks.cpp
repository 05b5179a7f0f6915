#include "sim/virtual_ranks.h"

#include <deque>
#include <exception>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "comm/transport/fiber.h"
#include "comm/transport/tags.h"
#include "sim/flows.h"
#include "sim/rounds.h"

namespace renkei::sim {
namespace {

constexpr size_t kStackBytes = 128 << 10;

class World : public Carrier::Changed, public Clock {
 public:
  World(const Network& network, Carrier& carrier)
      : network_(network),
        carrier_(carrier),
        hosts_(network.hosts()),
        ranks_(static_cast<size_t>(network.ranks())) {}

  std::vector<double> run(const RankBody& body);

  double seconds() const override { return carrier_.now(); }
  void done(Transfer& transfer) override {
    wake_if_awaited(transfer.from, transfer);
    wake_if_awaited(transfer.to, transfer);
  }
  void awake(int rank) override { runnable_.push_back(rank); }

 private:
  class Rank;
  struct Member {
    std::unique_ptr<comm::Fiber> fiber;
    const Transfer* awaited = nullptr;  // null: it can run, or sleeps
    double end = 0;
  };
  // What goes from one rank to another under one tag: what only one end has reached, oldest first.
  using Channel = std::deque<Transfer*>;

  Member& member(int rank) { return ranks_[static_cast<size_t>(rank)]; }
  void wake_if_awaited(int rank, const Transfer& transfer) {
    if (member(rank).awaited != &transfer) return;
    member(rank).awaited = nullptr;
    runnable_.push_back(rank);
  }
  void fail(int rank, std::exception_ptr exception) {
    if (failed_rank_ >= 0) return;
    failed_rank_ = rank;
    failure_ = std::move(exception);
    for (size_t other = 0; other < ranks_.size(); ++other)
      if (std::exchange(ranks_[other].awaited, nullptr))
        runnable_.push_back(static_cast<int>(other));
  }
  // Everyone waits for a message that never comes.
  void give_up() {
    for (size_t rank = 0; rank < ranks_.size(); ++rank)
      if (std::exchange(ranks_[rank].awaited, nullptr)) {
        runnable_.push_back(static_cast<int>(rank));
        return;
      }
    throw Error(ErrorCode::bug, "virtual ranks neither wait nor run");
  }
  Channel& channel(int from, int to, int tag) {
    static_assert(comm::kAllTags.end() <= 1 << 16);
    return channels_[uint64_t{static_cast<uint32_t>(from)} << 40 |
                     uint64_t{static_cast<uint32_t>(to)} << 16 | static_cast<uint32_t>(tag)];
  }
  // The oldest one that the other end has reached, or a new one.
  Transfer& meet(int from, int to, double bytes, int tag, bool sends) {
    Channel& waiting = channel(from, to, tag);
    if (!waiting.empty() && (sends ? waiting.front()->expected : waiting.front()->sent)) {
      Transfer& transfer = *waiting.front();
      waiting.pop_front();
      if (transfer.bytes != bytes)
        throw Error(ErrorCode::bug, fmt::format("rank {} sends {} bytes where rank {} expects {}",
                                                from, sends ? bytes : transfer.bytes, to,
                                                sends ? transfer.bytes : bytes));
      return transfer;
    }
    Transfer* transfer = nullptr;
    if (unused_.empty()) {
      transfer = &transfers_.emplace_back();
    } else {
      transfer = unused_.back();
      unused_.pop_back();
    }
    *transfer = {.from = from, .to = to, .bytes = bytes};
    waiting.push_back(transfer);
    return *transfer;
  }
  void let_go(Transfer& transfer) {
    if (--transfer.holders == 0 && transfer.arrived) unused_.push_back(&transfer);
  }

  const Network& network_;
  Carrier& carrier_;
  std::vector<std::string> hosts_;
  std::vector<Member> ranks_;
  std::deque<int> runnable_;
  std::unordered_map<uint64_t, Channel> channels_;
  std::deque<Transfer> transfers_;  // places stay where they are
  std::vector<Transfer*> unused_;
  int failed_rank_ = -1;
  std::exception_ptr failure_;
};

class World::Rank : public VirtualRank {
 public:
  Rank(World& world, int rank) : world_(world), rank_(rank), me_(world.member(rank)) {}

  int rank() const override { return rank_; }
  int size() const override { return world_.network_.ranks(); }
  const std::string& host(int rank) const override {
    return world_.hosts_[static_cast<size_t>(rank)];
  }
  const Clock& clock() const override { return world_; }

  comm::Request send(int to, std::span<const std::byte> bytes, int tag) override {
    Transfer& transfer =
        world_.meet(rank_, to, static_cast<double>(bytes.size()), tag, /*sends=*/true);
    transfer.sent = true;
    transfer.round = world_.carrier_.round_of(rank_);
    return reach(transfer, /*sends=*/true);
  }
  comm::Request receive(int from, std::span<std::byte> bytes, int tag) override {
    Transfer& transfer =
        world_.meet(from, rank_, static_cast<double>(bytes.size()), tag, /*sends=*/false);
    transfer.expected = true;
    return reach(transfer, /*sends=*/false);
  }

  void wait(comm::Request& request, const comm::Call& call) override {
    if (!request.state()) return;
    const auto& handle = static_cast<const Handle&>(*request.state());
    const Transfer& transfer = handle.transfer;
    if (!handle.complete() && world_.failed_rank_ < 0) {
      me_.awaited = &transfer;
      me_.fiber->suspend();
    }
    if (!handle.complete()) {
      if (world_.failed_rank_ >= 0) throw_failed(*this, world_.failed_rank_, call);
      throw_timeout(*this, handle.sends ? transfer.to : transfer.from, call);
    }
    if (!handle.sends) world_.carrier_.taken(transfer);
    request = comm::Request();
  }
  bool done(comm::Request& request) override {
    if (!request.state()) return true;
    const auto& handle = static_cast<const Handle&>(*request.state());
    if (!handle.complete()) {
      if (world_.failed_rank_ >= 0) throw_failed(*this, world_.failed_rank_, {});
      world_.runnable_.push_back(rank_);
      me_.fiber->suspend();
    }
    return handle.complete();
  }
  void wait_until(double seconds) override {
    world_.carrier_.wake_at(rank_, seconds);
    me_.fiber->suspend();
  }

 private:
  struct Handle : comm::Request::State {
    Handle(World& of, Transfer& what, bool is_send) : world(of), transfer(what), sends(is_send) {
      ++transfer.holders;
    }
    ~Handle() override { world.let_go(transfer); }
    bool complete() const { return sends ? transfer.left : transfer.arrived; }

    World& world;
    Transfer& transfer;
    bool sends;
  };

  comm::Request reach(Transfer& transfer, bool sends) {
    auto handle = std::make_unique<Handle>(world_, transfer, sends);
    // The receiver of a message that was sent before it was expected.
    if (!sends && !transfer.sent) return comm::Request(std::move(handle));
    world_.carrier_.reached(transfer);
    if (transfer.arrived) world_.done(transfer);
    return comm::Request(std::move(handle));
  }

  World& world_;
  int rank_;
  Member& me_;
};

std::vector<double> World::run(const RankBody& body) {
  for (int rank = 0; rank < network_.ranks(); ++rank) {
    member(rank).fiber = std::make_unique<comm::Fiber>(kStackBytes, [this, &body, rank] {
      try {
        Rank transport(*this, rank);
        body(transport);
        member(rank).end = carrier_.now();
        carrier_.ended(rank);
      } catch (...) {
        fail(rank, std::current_exception());
      }
    });
    runnable_.push_back(rank);
  }
  for (size_t ended = 0; ended < ranks_.size();) {
    while (runnable_.empty())
      if (!carrier_.advance(*this)) give_up();
    comm::Fiber& fiber = *member(runnable_.front()).fiber;
    runnable_.pop_front();
    fiber.resume();
    if (fiber.ended()) ++ended;
  }
  if (failure_) std::rethrow_exception(failure_);
  std::vector<double> ends;
  for (const Member& rank : ranks_) ends.push_back(rank.end);
  return ends;
}

}  // namespace

double seconds_in_rounds(const Network& network, const RankBody& body) {
  Rounds rounds(network);
  World(network, rounds).run(body);
  return rounds.seconds();
}

std::vector<double> ends_with_flows(const Network& network, const RankBody& body) {
  Flows flows(network);
  return World(network, flows).run(body);
}

}  // namespace renkei::sim
