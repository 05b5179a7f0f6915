#pragma once

#include <mutex>
#include <set>
#include <utility>
#include <vector>

namespace renkei::comm {

// Which channels (tags.h) of a rank's transport are in use, and among which ranks. Two views of the
// same ranks on one channel would receive each other's messages. Views whose ranks differ may share
// a channel, as the rows of a torus do; whoever makes some that overlap sees to their order.
class ChannelRegistry {
 public:
  // The channel and the ranks are those of the whole job. A bug Error when they are taken, or when
  // there is no such channel.
  void take(int channel, const std::vector<int>& ranks);
  void give_back(int channel, const std::vector<int>& ranks);
  // The numbers of groups (tags.h) that have channels, of whatever ranks.
  std::set<int> groups() const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::pair<int, std::vector<int>>> taken_;
};

}  // namespace renkei::comm
