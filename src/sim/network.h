// The links of a cluster, as messages between its devices meet them. Each link carries both
// directions apart:
//
//   device         its own link to the others of the node (PCIe, NVLink, memory)
//   adapter        of a node; devices are dealt out to them in order
//   group uplink   from the switch of a group of nodes to all others
//
// A message inside a node uses two links, one to another node of the group four, one to another
// group six. Its latency is that of the description (cluster::link_between).
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "cluster/description.h"

namespace renkei::sim {

using Link = int;  // a place in Network::capacities()

struct Route {
  std::array<Link, 6> places{};
  int count = 0;
  double latency_seconds = 0;

  std::span<const Link> links() const { return {places.data(), static_cast<size_t>(count)}; }
};

class Network {
 public:
  // Rank r is on devices[r].
  Network(const cluster::Description& machine, std::vector<cluster::Place> devices);

  int ranks() const { return static_cast<int>(devices_.size()); }
  std::span<const double> capacities() const { return capacities_; }  // bytes per second
  Route route(int from, int to) const;
  // One name per node, in the order of ranks.
  std::vector<std::string> hosts() const;
  const cluster::Place& place(int rank) const { return devices_[static_cast<size_t>(rank)]; }
  std::span<const cluster::Place> places() const { return devices_; }

 private:
  struct Ends {  // of a rank
    Link device_out, adapter_out, group_out;
  };
  // The way in is the link behind the way out.
  static Link in(Link out) { return out + 1; }

  std::vector<cluster::Place> devices_;
  std::vector<Ends> ends_;
  std::vector<double> capacities_;
  std::vector<double> inside_latency_;  // by Place::nodes
  double between_latency_ = 0, uplink_latency_ = 0;
};

// The ranks among these devices, renumbered from 0.
Network part_of(const cluster::Description& machine, const Network& network,
                std::span<const int> ranks);

}  // namespace renkei::sim
