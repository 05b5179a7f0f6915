#include "comm/transport/sub_transport.h"

#include <algorithm>

#include "base/error.h"

namespace renkei::comm {

SubTransport::SubTransport(Transport& parent, std::vector<int> ranks, int channel)
    : parent_(parent), ranks_(std::move(ranks)), channel_(channel) {
  const auto found = std::find(ranks_.begin(), ranks_.end(), parent.rank());
  if (found == ranks_.end())
    throw Error(ErrorCode::bug,
                fmt::format("rank {} is no member of its own group", parent.rank()));
  rank_ = static_cast<int>(found - ranks_.begin());
  parent_.registry().take(parent_.channel() + channel_, ranks_in_job());
}

SubTransport::~SubTransport() {
  parent_.registry().give_back(parent_.channel() + channel_, ranks_in_job());
}

std::vector<int> SubTransport::ranks_in_job() const {
  std::vector<int> in_job;
  for (const int rank : ranks_) in_job.push_back(parent_.job_rank(rank));
  return in_job;
}

int SubTransport::parent_rank(int rank) const {
  if (rank < 0 || rank >= size())
    throw Error(ErrorCode::bug, fmt::format("there is no rank {} among {} ranks", rank, size()));
  return ranks_[static_cast<size_t>(rank)];
}

Request SubTransport::send(int to, std::span<const std::byte> bytes, int tag) {
  return parent_.send(parent_rank(to), bytes, tag_here(tag));
}

Request SubTransport::receive(int from, std::span<std::byte> bytes, int tag) {
  return parent_.receive(parent_rank(from), bytes, tag_here(tag));
}

int SubTransport::sender_of_next(int tag) {
  const auto found = std::ranges::find(ranks_, parent_.sender_of_next(tag_here(tag)));
  return found == ranks_.end() ? -1 : static_cast<int>(found - ranks_.begin());
}

std::shared_ptr<SharedRegion> SubTransport::make_region(const std::vector<int>& ranks,
                                                        size_t bytes) {
  std::vector<int> in_parent;
  for (const int rank : ranks) in_parent.push_back(parent_rank(rank));
  return parent_.make_region(in_parent, bytes);
}

}  // namespace renkei::comm
