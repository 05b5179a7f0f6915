#include "sim/flows.h"

#include <algorithm>

#include "plan/at.h"

namespace renkei::sim {
namespace {

// Events that are nearer than this are one: their order is rounding, and rates are solved once.
constexpr double kSameSeconds = 1e-13;

using plan::at;

}  // namespace

Flows::Flows(const Network& network)
    : network_(network), shares_(network.capacities()), on_link_(network.capacities().size()) {}

std::deque<int>& Flows::queue_of(const Transfer& transfer) {
  return turns_[uint64_t{static_cast<uint32_t>(transfer.from)} << 32 |
                static_cast<uint32_t>(transfer.to)];
}

void Flows::add_event(double time, What what, int who, uint32_t version) {
  events_.push({time, next_number_++, who, version, what});
}

void Flows::reached(Transfer& transfer) {
  if (!transfer.sent || !transfer.expected) return;
  int flow = 0;
  if (unused_.empty()) {
    flow = static_cast<int>(flows_.size());
    flows_.emplace_back();
  } else {
    flow = unused_.back();
    unused_.pop_back();
  }
  Flow& mine = flows_[at(flow)];
  mine.transfer = &transfer;
  mine.route = network_.route(transfer.from, transfer.to);
  mine.left = transfer.bytes;
  mine.flowing = mine.may_begin = false;
  queue_of(transfer).push_back(flow);
  add_event(now_ + mine.route.latency_seconds, What::begins, flow);
}

void Flows::wake_at(int rank, double seconds) {
  add_event(std::max(now_, seconds), What::wakes, rank);
}

bool Flows::advance(Changed& changed) {
  if (events_.empty()) return false;
  now_ = events_.top().time;
  while (!events_.empty() && events_.top().time <= now_ + kSameSeconds) {
    const Event event = events_.top();
    events_.pop();
    handle(event, changed);
  }
  solve_changed();
  return true;
}

void Flows::handle(const Event& event, Changed& changed) {
  switch (event.what) {
    case What::wakes:
      return changed.awake(event.who);
    case What::begins:
      flows_[at(event.who)].may_begin = true;
      if (queue_of(*flows_[at(event.who)].transfer).front() == event.who) begin(event.who);
      return;
    case What::ends:
      if (flows_[at(event.who)].version == event.version) end(event.who, changed);
  }
}

void Flows::begin(int flow) {
  Flow& mine = flows_[at(flow)];
  mine.flowing = true;
  mine.since = now_;
  mine.rate = 0;
  for (const Link link : mine.route.links()) on_link_[at(link)].push_back(flow);
  changed_.push_back(flow);
}

void Flows::end(int flow, Changed& changed) {
  Flow& mine = flows_[at(flow)];
  ++mine.version;
  mine.flowing = false;
  for (const Link link : mine.route.links()) {
    std::vector<int>& here = on_link_[at(link)];
    here.erase(std::ranges::find(here, flow));
    if (!here.empty()) changed_.push_back(here.front());
  }
  Transfer& transfer = *mine.transfer;
  std::deque<int>& turns = queue_of(transfer);
  turns.pop_front();
  if (!turns.empty() && flows_[at(turns.front())].may_begin) begin(turns.front());
  unused_.push_back(flow);
  transfer.left = transfer.arrived = true;
  changed.done(transfer);
}

void Flows::solve_changed() {
  ++mark_;
  for (const int flow : changed_)
    if (flows_[at(flow)].flowing && flows_[at(flow)].mark != mark_) solve_around(flow);
  changed_.clear();
}

// All that share a link with it, and those that share one with them, and so on.
void Flows::solve_around(int first) {
  std::vector<int> group{first};
  flows_[at(first)].mark = mark_;
  for (size_t next = 0; next < group.size(); ++next)
    for (const Link link : flows_[at(group[next])].route.links())
      for (const int other : on_link_[at(link)])
        if (flows_[at(other)].mark != mark_) {
          flows_[at(other)].mark = mark_;
          group.push_back(other);
        }
  if (group.size() == 1) {
    double rate = 0;
    for (const Link link : flows_[at(first)].route.links()) {
      const double capacity = network_.capacities()[at(link)];
      rate = rate == 0 ? capacity : std::min(rate, capacity);
    }
    return set_rate(first, rate);
  }
  std::ranges::sort(group);
  std::vector<Route> routes;
  for (const int flow : group) routes.push_back(flows_[at(flow)].route);
  const std::vector<double> rates = shares_.rates(routes);
  for (size_t i = 0; i < group.size(); ++i) set_rate(group[i], rates[i]);
}

void Flows::set_rate(int flow, double rate) {
  Flow& mine = flows_[at(flow)];
  if (mine.rate == rate) return;
  mine.left = std::max(0.0, mine.left - mine.rate * (now_ - mine.since));
  mine.since = now_;
  mine.rate = rate;
  add_event(now_ + mine.left / rate, What::ends, flow, ++mine.version);
}

}  // namespace renkei::sim
