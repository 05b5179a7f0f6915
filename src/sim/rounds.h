#pragma once

#include <deque>
#include <vector>

#include "sim/carrier.h"

namespace renkei::sim {

// Messages arrive at once, and carry a number: that of the round. What a rank sends after it has
// received a message of round r belongs to round r + 1 or a later one. A round is over when all
// ranks are beyond it; only then it is known what shares its links.
class Rounds : public Carrier {
 public:
  explicit Rounds(const Network& network);

  double seconds() const { return seconds_; }  // of all rounds, once all ranks have ended

  void reached(Transfer& transfer) override;
  void taken(const Transfer& transfer) override;
  int round_of(int rank) const override { return at_[static_cast<size_t>(rank)]; }
  void ended(int rank) override;
  bool advance(Changed&) override { return false; }
  void wake_at(int rank, double seconds) override;
  double now() const override { return seconds_; }

 private:
  struct Message {
    int from, to;
    double bytes;
  };
  struct Round {
    int ranks = 0;  // that are in it
    std::vector<Message> messages = {};
  };
  Round& round(int number);
  void leave(int number);
  double seconds_of(const Round& round);

  const Network& network_;
  std::vector<int> at_;  // the round of each rank
  std::deque<Round> open_;
  int first_open_ = 0;
  int ranks_left_;
  double seconds_ = 0;
  std::vector<double> load_;  // bytes of a link; zero between rounds
};

}  // namespace renkei::sim
