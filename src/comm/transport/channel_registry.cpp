#include "comm/transport/channel_registry.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "comm/transport/tags.h"

namespace renkei::comm {

void ChannelRegistry::take(int channel, const std::vector<int>& ranks) {
  if (channel < 0 || channel >= kChannels)
    throw Error(ErrorCode::bug, fmt::format("there is no channel {} of {}", channel, kChannels));
  if (channel == 0) return;  // the parent's own, on purpose
  const std::lock_guard lock(mutex_);
  std::pair wanted(channel, ranks);
  if (std::ranges::count(taken_, wanted) > 0)
    throw Error(ErrorCode::bug, fmt::format("channel {} of ranks {} is taken twice", channel,
                                            fmt::join(ranks, ",")));
  taken_.push_back(std::move(wanted));
}

void ChannelRegistry::give_back(int channel, const std::vector<int>& ranks) {
  const std::lock_guard lock(mutex_);
  std::erase(taken_, std::pair(channel, ranks));
}

std::set<int> ChannelRegistry::groups() const {
  const std::lock_guard lock(mutex_);
  std::set<int> numbers;
  for (const auto& [channel, ranks] : taken_)
    if (channel >= channels::group(0) && channel < channels::group(channels::kMostGroups))
      numbers.insert((channel - channels::group(0)) / channels::kStride);
  return numbers;
}

}  // namespace renkei::comm
