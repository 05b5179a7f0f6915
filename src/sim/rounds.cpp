#include "sim/rounds.h"

#include <algorithm>

#include "base/error.h"

namespace renkei::sim {

Rounds::Rounds(const Network& network)
    : network_(network),
      at_(static_cast<size_t>(network.ranks())),
      ranks_left_(network.ranks()),
      load_(network.capacities().size()) {
  round(0).ranks = network.ranks();
}

Rounds::Round& Rounds::round(int number) {
  const auto place = static_cast<size_t>(number - first_open_);
  if (place >= open_.size()) open_.resize(place + 1);
  return open_[place];
}

void Rounds::reached(Transfer& transfer) {
  if (!transfer.left) {
    round(transfer.round).messages.push_back({transfer.from, transfer.to, transfer.bytes});
    transfer.left = true;
  }
  transfer.arrived = transfer.expected;
}

void Rounds::taken(const Transfer& transfer) {
  int& mine = at_[static_cast<size_t>(transfer.to)];
  if (transfer.round < mine) return;
  const int before = mine;
  mine = transfer.round + 1;
  ++round(mine).ranks;
  leave(before);
}

void Rounds::ended(int rank) {
  --ranks_left_;
  leave(at_[static_cast<size_t>(rank)]);
}

void Rounds::leave(int number) {
  --round(number).ranks;
  while (!open_.empty() && open_.front().ranks == 0 && (open_.size() > 1 || ranks_left_ == 0)) {
    seconds_ += seconds_of(open_.front());
    open_.pop_front();
    ++first_open_;
  }
}

double Rounds::seconds_of(const Round& round) {
  for (const Message& message : round.messages) {
    const Route route = network_.route(message.from, message.to);
    for (const Link link : route.links()) load_[static_cast<size_t>(link)] += message.bytes;
  }
  double longest = 0;
  for (const Message& message : round.messages) {
    const Route route = network_.route(message.from, message.to);
    double transfer = 0;
    for (const Link link : route.links()) {
      const auto place = static_cast<size_t>(link);
      transfer = std::max(transfer, load_[place] / network_.capacities()[place]);
    }
    longest = std::max(longest, route.latency_seconds + transfer);
  }
  for (const Message& message : round.messages) {
    const Route route = network_.route(message.from, message.to);
    for (const Link link : route.links()) load_[static_cast<size_t>(link)] = 0;
  }
  return longest;
}

void Rounds::wake_at(int, double) {
  throw Error(ErrorCode::bug, "rounds have no time to wait for");
}

}  // namespace renkei::sim
