// In which order the ranks stand on a ring. A ring that visits all ranks of a host one after the
// other, and all hosts of a group (a rack, a switch) one after the other, enters and leaves every
// host and every group once: each uplink carries the ring's traffic once in each direction, which
// is the least. A ring by rank, where ranks were dealt out round-robin to the hosts, carries it
// once for each rank of the host.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace renkei::comm {

// The names of the hosts of each group. A host that is in none is a group of its own.
using HostGroups = std::vector<std::vector<std::string>>;

// hosts[r] is the host of rank r. Groups, hosts and ranks are in the order in which they first
// appear by rank.
std::vector<int> ring_order(std::span<const std::string> hosts, const HostGroups& groups = {});

// How many of the ring's n links, the one back to the first rank included, lead to another host or
// to another group.
int host_crossings(std::span<const int> order, std::span<const std::string> hosts);
int group_crossings(std::span<const int> order, std::span<const std::string> hosts,
                    const HostGroups& groups);

// "a1,a2;b1,b2": commas between the hosts of a group, semicolons between groups. Throws a usage
// Error for an empty name and for a host that is named twice.
HostGroups parse_host_groups(std::string_view text);
std::string format_host_groups(const HostGroups& groups);
// Throws a usage Error for a host on which no rank runs: most likely a typing mistake.
void check_host_groups(const HostGroups& groups, std::span<const std::string> hosts);

// "0,2,1,3". Throws a usage Error that says what is wrong unless it names each of `ranks` once.
std::vector<int> parse_ring_order(std::string_view text, int ranks);
std::string format_ring_order(std::span<const int> order);
void check_ring_order(std::span<const int> order, int ranks);

// The ranks of each host, hosts in the order in which `order` first visits them and ranks in rank
// order.
std::vector<std::vector<int>> ranks_by_host(std::span<const int> order,
                                            std::span<const std::string> hosts);

}  // namespace renkei::comm
