#include "comm/topology.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "base/error.h"

namespace renkei::comm {

std::vector<int> ring_order(std::span<const std::string> hosts,
                            const std::map<std::string, std::string>& group_of_host) {
  // Numbers in order of first appearance. A lone host must not share its name with a group.
  std::map<std::pair<bool, std::string>, int> group_numbers;
  std::map<std::string, int> host_numbers;
  std::vector<std::pair<int, int>> keys;  // (group, host) of each rank
  for (const std::string& host : hosts) {
    const auto group = group_of_host.find(host);
    const bool known = group != group_of_host.end();
    const auto [group_entry, new_group] = group_numbers.try_emplace(
        {known, known ? group->second : host}, static_cast<int>(group_numbers.size()));
    const auto [host_entry, new_host] =
        host_numbers.try_emplace(host, static_cast<int>(host_numbers.size()));
    keys.emplace_back(group_entry->second, host_entry->second);
  }
  std::vector<int> order(hosts.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return keys[static_cast<size_t>(a)] < keys[static_cast<size_t>(b)];
  });
  return order;
}

int host_crossings(std::span<const int> order, std::span<const std::string> hosts) {
  int crossings = 0;
  for (size_t p = 0; p < order.size(); ++p) {
    const auto here = static_cast<size_t>(order[p]);
    const auto next = static_cast<size_t>(order[(p + 1) % order.size()]);
    if (hosts[here] != hosts[next]) ++crossings;
  }
  return crossings;
}

std::vector<int> parse_ring_order(std::string_view text, int ranks) {
  std::vector<int> order;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    std::string_view item = text.substr(begin, end - begin);
    while (item.starts_with(' ')) item.remove_prefix(1);
    while (item.ends_with(' ')) item.remove_suffix(1);
    int rank = 0;
    const auto [rest, error] = std::from_chars(item.data(), item.data() + item.size(), rank);
    if (error != std::errc() || rest != item.data() + item.size())
      throw Error(ErrorCode::usage, fmt::format("\"{}\" in the ring \"{}\" is no rank", item, text),
                  "give the ranks in their order on the ring, such as 0,2,1,3");
    order.push_back(rank);
    begin = end + 1;
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
