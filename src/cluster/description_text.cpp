#include <fmt/format.h>

#include "cluster/description.h"

namespace renkei::cluster {
namespace {

std::string text_of(const comm::LinkCost& link) {
  return fmt::format("{{ latency_seconds = {:.4g}, bytes_per_second = {:.4g} }}",
                     link.latency_seconds, link.bytes_per_second);
}

}  // namespace

std::string format_description(const Description& description) {
  std::string text = fmt::format("version = 1\nname = \"{}\"\nsummary = \"{}\"\n", description.name,
                                 description.summary);
  for (const DeviceKind& kind : description.kinds)
    text += fmt::format(
        "\n[device.{}]\nflops_per_second = {:.4g}\nefficiency = {:.4g}\nmemory = \"{}\"\n"
        "memory_bytes_per_second = {:.4g}\ncall_seconds = {:.4g}\n",
        kind.name, kind.flops_per_second, kind.efficiency, kind.memory_bytes,
        kind.memory_bytes_per_second, kind.call_seconds);
  for (const Nodes& some : description.nodes)
    text += fmt::format(
        "\n[[nodes]]\ncount = {}\ndevices = {}\ndevice = \"{}\"\nmemory = \"{}\"\nlink = {}\n",
        some.count, some.devices, description.kinds[static_cast<size_t>(some.kind)].name,
        some.memory_bytes, text_of(some.link));
  const Interconnect& net = description.interconnect;
  text += fmt::format("\n[interconnect]\nlatency_seconds = {:.4g}\nbytes_per_second = {:.4g}\n",
                      net.link.latency_seconds, net.link.bytes_per_second);
  if (net.group_nodes > 0)
    text += fmt::format("group_nodes = {}\nuplink = {}\n", net.group_nodes, text_of(net.uplink));
  if (description.storage.read_bytes_per_second > 0)
    text += fmt::format(
        "\n[storage]\nname = \"{}\"\nread_bytes_per_second = {:.4g}\nopen_seconds = {:.4g}\n",
        description.storage.name, description.storage.read_bytes_per_second,
        description.storage.open_seconds);
  return text;
}

}  // namespace renkei::cluster
