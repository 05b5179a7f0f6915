#include "comm/choice/topology.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <set>

#include "base/error.h"

namespace renkei::comm {
namespace {

// A number for each rank's group, and the same for the ranks of one group. Groups that are given
// have their own number, lone hosts those behind.
std::vector<size_t> group_numbers(std::span<const std::string> hosts, const HostGroups& groups) {
  std::map<std::string_view, size_t> of_host;
  for (size_t g = 0; g < groups.size(); ++g)
    for (const std::string& host : groups[g]) of_host.emplace(host, g);
  std::vector<size_t> numbers;
  size_t next = groups.size();
  for (const std::string& host : hosts) {
    const auto [entry, is_new] = of_host.try_emplace(host, next);
    if (is_new) ++next;
    numbers.push_back(entry->second);
  }
  return numbers;
}

// The place of each rank's key among the different keys, in order of first appearance.
template <typename Key>
std::vector<int> first_appearances(std::span<const Key> keys) {
  std::map<Key, int> numbers;
  std::vector<int> places;
  for (const Key& key : keys)
    places.push_back(numbers.try_emplace(key, static_cast<int>(numbers.size())).first->second);
  return places;
}

template <typename Key>
int crossings(std::span<const int> order, std::span<const Key> keys) {
  int count = 0;
  for (size_t p = 0; p < order.size(); ++p) {
    const auto here = static_cast<size_t>(order[p]);
    const auto next = static_cast<size_t>(order[(p + 1) % order.size()]);
    if (keys[here] != keys[next]) ++count;
  }
  return count;
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

// What stands between the separators; one empty item for an empty text.
std::vector<std::string_view> items_of(std::string_view text, char separator) {
  std::vector<std::string_view> items;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    items.push_back(trimmed(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return items;
}

}  // namespace

std::vector<int> ring_order(std::span<const std::string> hosts, const HostGroups& groups) {
  const auto group = first_appearances(std::span<const size_t>(group_numbers(hosts, groups)));
  const auto host = first_appearances(hosts);
  std::vector<int> order(hosts.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    const auto x = static_cast<size_t>(a), y = static_cast<size_t>(b);
    return std::pair(group[x], host[x]) < std::pair(group[y], host[y]);
  });
  return order;
}

int host_crossings(std::span<const int> order, std::span<const std::string> hosts) {
  return crossings(order, hosts);
}

int group_crossings(std::span<const int> order, std::span<const std::string> hosts,
                    const HostGroups& groups) {
  return crossings(order, std::span<const size_t>(group_numbers(hosts, groups)));
}

HostGroups parse_host_groups(std::string_view text) {
  const auto fail = [&](const std::string& what) {
    throw Error(ErrorCode::usage, fmt::format("the groups \"{}\" {}", text, what),
                "put commas between the hosts of a group and semicolons between groups, such as "
                "a1,a2;b1,b2");
  };
  HostGroups groups;
  std::set<std::string_view> seen;
  for (const std::string_view group : items_of(text, ';')) {
    groups.emplace_back();
    for (const std::string_view host : items_of(group, ',')) {
      if (host.empty()) fail("have a host without a name");
      if (!seen.insert(host).second) fail(fmt::format("name host {} twice", host));
      groups.back().emplace_back(host);
    }
  }
  return groups;
}

std::string format_host_groups(const HostGroups& groups) {
  std::string text;
  for (const auto& group : groups)
    text += fmt::format("{}{}", text.empty() ? "" : ";", fmt::join(group, ","));
  return text;
}

void check_host_groups(const HostGroups& groups, std::span<const std::string> hosts) {
  const std::set<std::string> known(hosts.begin(), hosts.end());
  for (const auto& group : groups)
    for (const std::string& host : group)
      if (!known.contains(host))
        throw Error(ErrorCode::usage,
                    fmt::format("comm.groups names host {}, on which no rank runs", host),
                    fmt::format("the hosts of this job are {}", fmt::join(known, ", ")));
}

std::vector<int> parse_ring_order(std::string_view text, int ranks) {
  std::vector<int> order;
  for (const std::string_view item : items_of(text, ',')) {
    int rank = 0;
    const auto [rest, error] = std::from_chars(item.data(), item.data() + item.size(), rank);
    if (error != std::errc() || rest != item.data() + item.size())
      throw Error(ErrorCode::usage, fmt::format("\"{}\" in the ring \"{}\" is no rank", item, text),
                  "give the ranks in their order on the ring, such as 0,2,1,3");
    order.push_back(rank);
  }
  check_ring_order(order, ranks);
  return order;
}

std::string format_ring_order(std::span<const int> order) {
  std::string text;
  for (const int rank : order) text += (text.empty() ? "" : ",") + std::to_string(rank);
  return text;
}

void check_ring_order(std::span<const int> order, int ranks) {
  const auto fail = [&](const std::string& what) {
    throw Error(ErrorCode::usage, fmt::format("the ring {} {}", format_ring_order(order), what),
                fmt::format("name each of the ranks 0 to {} once", ranks - 1));
  };
  std::vector<bool> seen(static_cast<size_t>(ranks));
  for (const int rank : order) {
    if (rank < 0 || rank >= ranks)
      fail(fmt::format("names rank {}, but there are {} ranks", rank, ranks));
    if (seen[static_cast<size_t>(rank)]) fail(fmt::format("names rank {} twice", rank));
    seen[static_cast<size_t>(rank)] = true;
  }
  const auto missing = std::find(seen.begin(), seen.end(), false);
  if (missing != seen.end()) fail(fmt::format("leaves out rank {}", missing - seen.begin()));
}

std::vector<std::vector<int>> ranks_by_host(std::span<const int> order,
                                            std::span<const std::string> hosts) {
  std::map<std::string_view, size_t> numbers;
  std::vector<std::vector<int>> ranks;
  for (const int rank : order) {
    const auto [entry, is_new] =
        numbers.try_emplace(hosts[static_cast<size_t>(rank)], ranks.size());
    if (is_new) ranks.emplace_back();
    ranks[entry->second].push_back(rank);
  }
  for (std::vector<int>& of_host : ranks) std::sort(of_host.begin(), of_host.end());
  return ranks;
}

}  // namespace renkei::comm
