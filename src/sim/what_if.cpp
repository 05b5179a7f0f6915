#include "sim/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>

#include "base/error.h"
#include "base/settings.h"

namespace renkei::sim {
namespace {

using cluster::Description;

// The numbers of a description that one name stands for.
std::vector<double*> numbers(Description& machine, std::string_view name) {
  std::vector<double*> all;
  for (cluster::DeviceKind& kind : machine.kinds) {
    if (name == "device.flops") all.push_back(&kind.flops_per_second);
    if (name == "device.memory_bandwidth") all.push_back(&kind.memory_bytes_per_second);
    if (name == "device.call_seconds") all.push_back(&kind.call_seconds);
    if (name == "device.spread") all.push_back(&kind.spread);
  }
  for (cluster::Nodes& nodes : machine.nodes) {
    if (name == "node.bandwidth") all.push_back(&nodes.link.bytes_per_second);
    if (name == "node.latency") all.push_back(&nodes.link.latency_seconds);
  }
  cluster::Interconnect& net = machine.interconnect;
  if (name == "interconnect.bandwidth") all.push_back(&net.link.bytes_per_second);
  if (name == "interconnect.latency") all.push_back(&net.link.latency_seconds);
  if (name == "uplink.bandwidth") all.push_back(&net.uplink.bytes_per_second);
  if (name == "uplink.latency") all.push_back(&net.uplink.latency_seconds);
  if (name == "storage.bandwidth") all.push_back(&machine.storage.read_bytes_per_second);
  return all;
}

}  // namespace

const std::vector<Knob>& knobs() {
  static const std::vector<Knob> all{
      {"device.flops", "arithmetic of the devices"},
      {"device.memory_bandwidth", "memory of the devices"},
      {"device.call_seconds", "overhead of each op", false},
      {"device.spread", "differences between equal devices", false},
      {"node.bandwidth", "links inside a node"},
      {"node.latency", "latency inside a node", false},
      {"interconnect.bandwidth", "links between nodes"},
      {"interconnect.latency", "latency between nodes", false},
      {"uplink.bandwidth", "links between groups of nodes"},
      {"uplink.latency", "latency between groups of nodes", false},
      {"storage.bandwidth", "storage of a node"},
  };
  return all;
}

void change(Description& machine, std::string_view assignment) {
  const size_t equal = assignment.find('=');
  const std::string name(assignment.substr(0, equal));
  std::vector<double*> changed = numbers(machine, name);
  if (changed.empty()) {
    std::vector<std::string> names;
    for (const Knob& knob : knobs()) names.push_back(knob.name);
    const auto near = nearest_name(name, names);
    throw Error(ErrorCode::usage, fmt::format("a cluster has no '{}' to change", name),
                near ? fmt::format("did you mean cluster.{}?", *near)
                     : fmt::format("choose one of {}", fmt::join(names, ", ")));
  }
  std::string_view value = equal == std::string_view::npos ? "" : assignment.substr(equal + 1);
  const bool factor = value.ends_with('x');
  if (factor) value.remove_suffix(1);
  double number = 0;
  const auto [rest, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || rest != value.data() + value.size() || !(number >= 0) ||
      (number == 0 && name.ends_with("bandwidth")))
    throw Error(ErrorCode::usage, fmt::format("'{}' is no value for a cluster", assignment),
                "write a number, or a factor: interconnect.bandwidth=2x");
  for (double* place : changed) *place = factor ? *place * number : number;
}

}  // namespace renkei::sim
