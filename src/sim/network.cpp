#include "sim/network.h"

#include <map>

namespace renkei::sim {

Network::Network(const cluster::Description& machine, std::vector<cluster::Place> devices)
    : devices_(std::move(devices)) {
  const cluster::Interconnect& net = machine.interconnect;
  const auto add = [&](double bytes_per_second) {
    capacities_.insert(capacities_.end(), 2, bytes_per_second);
    return static_cast<Link>(capacities_.size()) - 2;
  };
  for (const cluster::Nodes& nodes : machine.nodes)
    inside_latency_.push_back(nodes.link.latency_seconds);
  between_latency_ = net.link.latency_seconds;
  uplink_latency_ = net.uplink.latency_seconds;
  std::map<std::pair<int, int>, Link> adapters;  // by node and number
  std::map<int, Link> groups;
  std::map<int, int> devices_on;  // of a node, so far
  for (const cluster::Place& place : devices_) {
    const cluster::Nodes& nodes = machine.nodes[static_cast<size_t>(place.nodes)];
    const int number = devices_on[place.node]++;
    const int adapter = number * net.adapters / nodes.devices;
    const auto [link, is_new] = adapters.try_emplace({place.node, adapter}, 0);
    if (is_new) link->second = add(net.link.bytes_per_second / net.adapters);
    const auto [group, first] = groups.try_emplace(place.group, 0);
    if (first) group->second = add(net.uplink.bytes_per_second);
    ends_.push_back({add(nodes.link.bytes_per_second), link->second, group->second});
  }
}

Route Network::route(int from, int to) const {
  const auto f = static_cast<size_t>(from), t = static_cast<size_t>(to);
  const cluster::Place &a = devices_[f], &b = devices_[t];
  Route route;
  const auto over = [&](Link link) { route.places[static_cast<size_t>(route.count++)] = link; };
  over(ends_[f].device_out);
  over(in(ends_[t].device_out));
  if (a.node == b.node) {
    route.latency_seconds = inside_latency_[static_cast<size_t>(a.nodes)];
    return route;
  }
  route.latency_seconds = between_latency_;
  over(ends_[f].adapter_out);
  over(in(ends_[t].adapter_out));
  if (a.group == b.group) return route;
  route.latency_seconds += uplink_latency_;
  over(ends_[f].group_out);
  over(in(ends_[t].group_out));
  return route;
}

std::vector<std::string> Network::hosts() const {
  std::vector<std::string> names;
  for (const cluster::Place& place : devices_) names.push_back("node" + std::to_string(place.node));
  return names;
}

Network part_of(const cluster::Description& machine, const Network& network,
                std::span<const int> ranks) {
  std::vector<cluster::Place> devices;
  for (const int rank : ranks) devices.push_back(network.place(rank));
  return {machine, std::move(devices)};
}

}  // namespace renkei::sim
