// Our flows against SimGrid's, an independent simulator: the same collectives, rank for rank, run
// over both. SimGrid's actors exchange over mailboxes, on a platform whose routes have the links
// and the latency of ours. Its model is CM02 without cross traffic: other settings assume TCP.
//
// Messages between two ranks follow each other in ours, as on a connection; SimGrid's share the
// links with each other. So that both mean the same, a rank sends to another one only when what it
// sent before has arrived.
//
// SimGrid has one engine for the life of a process, so that each run is a process of its own.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <simgrid/s4u.hpp>

#include <map>
#include <memory>
#include <numeric>

#include "base/philox.h"
#include "comm/allreduce.h"
#include "sim/virtual_ranks.h"

namespace renkei::sim {
namespace {

namespace sg = simgrid::s4u;
using Body = std::function<void(comm::Transport&)>;

// A transport on which messages to the same rank wait for each other.
class InTurn : public comm::Transport {
 public:
  explicit InTurn(comm::Transport& inner) : inner_(inner) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  const std::string& host(int rank) const override { return inner_.host(rank); }

  comm::Request send(int to, std::span<const std::byte> bytes, int tag) override {
    std::shared_ptr<comm::Request>& last = last_[to];
    if (last) inner_.wait(*last, {});
    last = std::make_shared<comm::Request>(inner_.send(to, bytes, tag));
    return wrapped(last);
  }
  comm::Request receive(int from, std::span<std::byte> bytes, int tag) override {
    return wrapped(std::make_shared<comm::Request>(inner_.receive(from, bytes, tag)));
  }
  void wait(comm::Request& request, const comm::Call& call) override {
    if (request.state()) inner_.wait(*static_cast<State&>(*request.state()).inner, call);
    request = comm::Request();
  }
  bool done(comm::Request& request) override {
    return !request.state() || inner_.done(*static_cast<State&>(*request.state()).inner);
  }

 private:
  struct State : comm::Request::State {
    std::shared_ptr<comm::Request> inner;
  };
  static comm::Request wrapped(std::shared_ptr<comm::Request> inner) {
    auto state = std::make_unique<State>();
    state->inner = std::move(inner);
    return comm::Request(std::move(state));
  }

  comm::Transport& inner_;
  std::map<int, std::shared_ptr<comm::Request>> last_;
};

class SimgridRank : public comm::Transport {
 public:
  SimgridRank(int rank, const std::vector<std::string>& hosts) : rank_(rank), hosts_(hosts) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(hosts_.size()); }
  const std::string& host(int rank) const override { return hosts_[static_cast<size_t>(rank)]; }

  comm::Request send(int to, std::span<const std::byte> bytes, int tag) override {
    static int anything = 0;
    auto state = std::make_unique<State>();
    state->transfer = mailbox(rank_, to, tag)->put_async(&anything, bytes.size());
    return comm::Request(std::move(state));
  }
  comm::Request receive(int from, std::span<std::byte>, int tag) override {
    auto state = std::make_unique<State>();
    state->transfer = mailbox(from, rank_, tag)->get_async<int>(&state->payload);
    return comm::Request(std::move(state));
  }
  void wait(comm::Request& request, const comm::Call&) override {
    if (!request.state()) return;
    static_cast<State&>(*request.state()).transfer->wait();
    request = comm::Request();
  }
  bool done(comm::Request& request) override {
    return !request.state() || static_cast<State&>(*request.state()).transfer->test();
  }

 private:
  struct State : comm::Request::State {
    sg::CommPtr transfer;
    int* payload = nullptr;
  };
  static sg::Mailbox* mailbox(int from, int to, int tag) {
    return sg::Mailbox::by_name(fmt::format("{} {} {}", from, to, tag));
  }

  int rank_;
  const std::vector<std::string>& hosts_;
};

void build_platform(const Network& network) {
  auto* zone = sg::create_full_zone("machine");
  std::vector<sg::Link*> links;
  for (const double capacity : network.capacities())
    links.push_back(
        zone->create_link(fmt::format("link {}", links.size()), capacity)->set_latency(0)->seal());
  std::map<double, sg::Link*> delays;  // links that only take time
  const auto delay = [&](double seconds) {
    auto [place, is_new] = delays.try_emplace(seconds, nullptr);
    if (is_new)
      place->second = zone->create_link(fmt::format("delay {}", seconds), 1e18)
                          ->set_latency(seconds)
                          ->set_sharing_policy(sg::Link::SharingPolicy::FATPIPE)
                          ->seal();
    return place->second;
  };
  std::vector<sg::Host*> hosts;
  for (int rank = 0; rank < network.ranks(); ++rank)
    hosts.push_back(zone->create_host(fmt::format("rank {}", rank), 1e9)->seal());
  for (int from = 0; from < network.ranks(); ++from)
    for (int to = 0; to < network.ranks(); ++to) {
      if (from == to) continue;
      const Route route = network.route(from, to);
      std::vector<sg::LinkInRoute> way{sg::LinkInRoute(delay(route.latency_seconds))};
      for (const Link link : route.links()) way.emplace_back(links[static_cast<size_t>(link)]);
      zone->add_route(hosts[static_cast<size_t>(from)]->get_netpoint(),
                      hosts[static_cast<size_t>(to)]->get_netpoint(), nullptr, nullptr, way,
                      /*symmetrical=*/false);
    }
  zone->seal();
}

double run_simgrid(const Network& network, const Body& body) {
  std::string words[] = {"simgrid", "--log=root.thresh:critical"};
  char* pointers[] = {words[0].data(), words[1].data(), nullptr};
  int count = 2;
  sg::Engine engine(&count, pointers);
  sg::Engine::set_config("network/model:CM02");
  sg::Engine::set_config("network/crosstraffic:0");
  sg::Engine::set_config("contexts/stack-size:256");
  build_platform(network);
  const std::vector<std::string> hosts = network.hosts();
  for (int rank = 0; rank < network.ranks(); ++rank)
    sg::Actor::create(fmt::format("rank {}", rank), sg::Host::by_name(fmt::format("rank {}", rank)),
                      [&, rank] {
                        SimgridRank transport(rank, hosts);
                        body(transport);
                      });
  engine.run();
  return sg::Engine::get_clock();
}

double simgrid_seconds(const Network& network, const Body& body) {
  int ends[2];
  if (pipe(ends) != 0) return 0;
  const pid_t child = fork();
  if (child == 0) {
    const double seconds = run_simgrid(network, body);
    const bool written = write(ends[1], &seconds, sizeof seconds) == sizeof seconds;
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  double seconds = 0;
  EXPECT_EQ(read(ends[0], &seconds, sizeof seconds), static_cast<ssize_t>(sizeof seconds));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  return seconds;
}

Body allreduce_of(double bytes, comm::AllreduceOptions options) {
  options.segment_bytes = size_t{1} << 40;  // one message for each chunk
  options.check = comm::Check::nothing;
  return [bytes, options](comm::Transport& direct) {
    InTurn transport(direct);
    comm::allreduce(transport, {nullptr, static_cast<size_t>(bytes) / 4, comm::DType::f32},
                    comm::Reduction::sum, {}, options);
  };
}

double our_seconds(const Network& network, const Body& body) {
  return std::ranges::max(ends_with_flows(network, [&](VirtualRank& rank) { body(rank); }));
}

Network mn1(int ranks) {
  const auto machine = cluster::load_description("mn1");
  return {machine, places(machine, ranks)};
}

constexpr double kBytes = 102e6;

void expect_equal(int ranks, const comm::AllreduceOptions& options, double tolerance,
                  const std::string& what) {
  const Network network = mn1(ranks);
  const Body body = allreduce_of(kBytes, options);
  const double ours = our_seconds(network, body), theirs = simgrid_seconds(network, body);
  EXPECT_NEAR(ours / theirs, 1, tolerance) << what << " on " << ranks << " ranks";
  fmt::print(stderr, "{:4} ranks, {:28} ours {:.6f} s, SimGrid {:.6f} s, {:+.2f} %\n", ranks, what,
             ours, theirs, 100 * (ours / theirs - 1));
}

TEST(AgainstSimGrid, RingsWithoutContentionAreWithinOnePerCent) {
  for (const int ranks : {8, 16, 64, 256})
    expect_equal(ranks, {.algorithm = comm::Algorithm::ring}, 0.01, "ring");
}

TEST(AgainstSimGrid, RingsInABadOrderAreWithinFivePerCent) {
  for (const int ranks : {64, 256}) {
    std::vector<int> stride;
    for (int device = 0; device < 8; ++device)
      for (int node = 0; node < ranks / 8; ++node) stride.push_back(node * 8 + device);
    expect_equal(ranks, {.algorithm = comm::Algorithm::ring, .ring_order = stride}, 0.05,
                 "ring, node after node");
  }
  std::vector<int> order(64);
  std::iota(order.begin(), order.end(), 0);
  Random random(1, RandomUse::simulated_jitter, 0, 0);
  for (size_t i = order.size() - 1; i > 0; --i)
    std::swap(order[i], order[random.below(static_cast<uint32_t>(i + 1))]);
  expect_equal(64, {.algorithm = comm::Algorithm::ring, .ring_order = order}, 0.05,
               "ring, random order");
}

TEST(AgainstSimGrid, OtherAlgorithmsAreWithinFivePerCent) {
  for (const int ranks : {8, 64, 256}) {
    expect_equal(ranks, {.algorithm = comm::Algorithm::halving_doubling}, 0.05,
                 "halving and doubling");
    expect_equal(ranks, {.algorithm = comm::Algorithm::torus}, 0.05, "torus");
    if (ranks > 8)
      expect_equal(ranks,
                   {.algorithm = comm::Algorithm::hierarchical,
                    .inner = comm::Algorithm::ring,
                    .outer = comm::Algorithm::ring},
                   0.05, "hierarchical");
  }
}

}  // namespace
}  // namespace renkei::sim
