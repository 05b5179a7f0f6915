#include "cluster/description.h"

#include <algorithm>
#include <set>

#include "base/error.h"

namespace renkei::cluster {

int Description::device_count() const {
  int count = 0;
  for (const Nodes& some : nodes) count += some.count * some.devices;
  return count;
}

std::vector<Place> places(const Description& description, int count) {
  if (count > description.device_count())
    throw Error(ErrorCode::usage,
                fmt::format("{} has {} devices, not {}", description.name,
                            description.device_count(), count),
                "ask for fewer with --devices");
  std::vector<Place> all;
  int node = 0;
  for (size_t some = 0; some < description.nodes.size(); ++some)
    for (int i = 0; i < description.nodes[some].count; ++i, ++node) {
      const int group_nodes = description.interconnect.group_nodes;
      all.insert(all.end(), static_cast<size_t>(description.nodes[some].devices),
                 {.kind = description.nodes[some].kind,
                  .nodes = static_cast<int>(some),
                  .node = node,
                  .group = group_nodes > 0 ? node / group_nodes : 0});
    }
  std::ranges::stable_sort(all, std::greater<>(), [&](const Place& place) {
    const DeviceKind& kind = description.kinds[static_cast<size_t>(place.kind)];
    return kind.flops_per_second * kind.efficiency;
  });
  all.resize(static_cast<size_t>(count));
  return all;
}

comm::LinkCost link_between(const Description& description, const Place& a, const Place& b) {
  if (a.node == b.node) return description.nodes[static_cast<size_t>(a.nodes)].link;
  const Interconnect& net = description.interconnect;
  const double adapter = net.link.bytes_per_second / net.adapters;
  if (a.group == b.group) return {net.link.latency_seconds, adapter};
  return {net.link.latency_seconds + net.uplink.latency_seconds,
          std::min(adapter, net.uplink.bytes_per_second)};
}

comm::CostModel cost_model(const Description& description, std::span<const Place> devices) {
  comm::CostModel model{.ranks = static_cast<int>(devices.size())};
  if (devices.empty()) return model;
  const DeviceKind& kind = description.kinds[static_cast<size_t>(devices.front().kind)];
  // Two operands are read and one is written.
  model.reduce_bytes_per_second = kind.memory_bytes_per_second / 3;
  model.inside = description.nodes[static_cast<size_t>(devices.front().nodes)].link;
  std::set<int> nodes;
  size_t most = 0, least = devices.size(), here = 0;
  for (size_t i = 0; i < devices.size(); ++i) {
    nodes.insert(devices[i].node);
    ++here;
    if (i + 1 < devices.size() && devices[i + 1].node == devices[i].node) continue;
    most = std::max(most, here);
    least = std::min(least, here);
    here = 0;
  }
  model.hosts = static_cast<int>(nodes.size());
  model.even = most == least && devices.size() % nodes.size() == 0;
  const Interconnect& net = description.interconnect;
  model.between = net.link;
  for (const Place& place : devices)
    if (place.group != devices.front().group)
      model.between = {net.link.latency_seconds + net.uplink.latency_seconds,
                       std::min(net.link.bytes_per_second, net.uplink.bytes_per_second)};
  return model;
}

}  // namespace renkei::cluster
