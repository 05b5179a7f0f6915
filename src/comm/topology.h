// In which order the ranks stand on a ring. A ring that visits all ranks of a host one after the
// other, and all hosts of a group (a rack, a switch) one after the other, enters and leaves every
// host and every group once: each uplink carries the ring's traffic once in each direction, which
// is the least. A ring by rank, where ranks were dealt out round-robin to the hosts, carries it
// once for each rank of the host.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace renkei::comm {

// hosts[r] is the host of rank r. Groups, hosts and ranks are in the order in which they first
// appear by rank; a host that `group_of_host` does not know is a group of its own.
std::vector<int> ring_order(std::span<const std::string> hosts,
                            const std::map<std::string, std::string>& group_of_host = {});

// How many of the ring's n links, the one back to the first rank included, lead to another host.
int host_crossings(std::span<const int> order, std::span<const std::string> hosts);

// "0,2,1,3". Throws a usage Error that says what is wrong unless it names each of `ranks` once.
std::vector<int> parse_ring_order(std::string_view text, int ranks);
std::string format_ring_order(std::span<const int> order);
void check_ring_order(std::span<const int> order, int ranks);

// The ranks of each host, hosts in the order in which `order` first visits them and ranks in rank
// order.
std::vector<std::vector<int>> ranks_by_host(std::span<const int> order,
                                            std::span<const std::string> hosts);

}  // namespace renkei::comm
