#pragma once

#include <cstdint>
#include <deque>
#include <queue>
#include <unordered_map>
#include <vector>

#include "sim/carrier.h"
#include "sim/fair_shares.h"

namespace renkei::sim {

// Events in virtual time. A message whose ends are both ready first takes the latency of its route,
// then has the share of each link that is fair among the messages that are under way; messages
// between the same two ranks follow each other. When one begins or ends, only those change their
// rate that share a link with it, directly or through others: rates are solved for them alone.
class Flows : public Carrier {
 public:
  explicit Flows(const Network& network);

  void reached(Transfer& transfer) override;
  void taken(const Transfer&) override {}
  int round_of(int) const override { return 0; }
  void ended(int) override {}
  bool advance(Changed& changed) override;
  void wake_at(int rank, double seconds) override;
  double now() const override { return now_; }

 private:
  struct Flow {
    Transfer* transfer = nullptr;
    Route route;
    double left = 0;  // bytes, at `since`
    double rate = 0, since = 0;
    uint32_t version = 0;  // of its end: an event of another one is out of date
    uint32_t mark = 0;     // of the last search that has met it
    bool flowing = false;  // or waiting for its latency to pass, or for its turn
    bool may_begin = false;
  };
  enum class What : uint8_t { begins, ends, wakes };
  struct Event {
    double time;
    uint64_t number;  // in the order of making: the same in every run
    int who;          // flow or rank
    uint32_t version;
    What what;
    bool operator>(const Event& other) const {
      return time != other.time ? time > other.time : number > other.number;
    }
  };

  void add_event(double time, What what, int who, uint32_t version = 0);
  void handle(const Event& event, Changed& changed);
  void begin(int flow);
  void end(int flow, Changed& changed);
  void solve_changed();
  void solve_around(int flow);
  void set_rate(int flow, double rate);
  std::deque<int>& queue_of(const Transfer& transfer);

  const Network& network_;
  FairShares shares_;
  std::vector<Flow> flows_;
  std::vector<int> unused_;
  std::vector<std::vector<int>> on_link_;                // flows that use it now
  std::unordered_map<uint64_t, std::deque<int>> turns_;  // by (from, to): the first one flows
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<int> changed_;  // flows whose neighbourhood must be solved
  uint64_t next_number_ = 0;
  uint32_t mark_ = 0;
  double now_ = 0;
};

}  // namespace renkei::sim
