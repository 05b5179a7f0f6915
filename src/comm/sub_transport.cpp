#include "comm/sub_transport.h"

#include <algorithm>

#include "base/error.h"
#include "comm/exchange.h"

namespace renkei::comm {

SubTransport::SubTransport(Transport& parent, std::vector<int> ranks, int channel)
    : parent_(parent), ranks_(std::move(ranks)), tag_offset_(channel * kTagsPerChannel) {
  const auto found = std::find(ranks_.begin(), ranks_.end(), parent.rank());
  if (found == ranks_.end())
    throw Error(ErrorCode::bug,
                fmt::format("rank {} is no member of its own group", parent.rank()));
  rank_ = static_cast<int>(found - ranks_.begin());
}

int SubTransport::parent_rank(int rank) const {
  if (rank < 0 || rank >= size())
    throw Error(ErrorCode::bug, fmt::format("there is no rank {} among {} ranks", rank, size()));
  return ranks_[static_cast<size_t>(rank)];
}

Request SubTransport::send(int to, std::span<const std::byte> bytes, int tag) {
  return parent_.send(parent_rank(to), bytes, tag + tag_offset_);
}

Request SubTransport::receive(int from, std::span<std::byte> bytes, int tag) {
  return parent_.receive(parent_rank(from), bytes, tag + tag_offset_);
}

std::shared_ptr<SharedRegion> SubTransport::share_among(const std::vector<int>& ranks,
                                                        size_t bytes) {
  std::vector<int> in_parent;
  for (const int rank : ranks) in_parent.push_back(parent_rank(rank));
  return parent_.share_among(in_parent, bytes);
}

}  // namespace renkei::comm
