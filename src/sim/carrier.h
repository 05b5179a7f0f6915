// What brings messages from one virtual rank to another, and what it takes. For virtual_ranks.cpp.
#pragma once

#include "sim/network.h"

namespace renkei::sim {

// A message, from when either end has been reached until both have let it go.
struct Transfer {
  int from = 0, to = 0;
  double bytes = 0;
  int round = 0;  // that of its sender
  bool sent = false, expected = false;
  bool left = false;     // the sender need not wait any more
  bool arrived = false;  // nor the receiver
  int holders = 0;
};

class Carrier {
 public:
  virtual ~Carrier() = default;
  // One of the ends has been reached: may set `left` and `arrived`.
  virtual void reached(Transfer& transfer) = 0;
  // The receiver has it.
  virtual void taken(const Transfer& transfer) = 0;
  // The round of what this rank sends next.
  virtual int round_of(int rank) const = 0;
  virtual void ended(int rank) = 0;
  // Nobody can go on: lets time pass until something has arrived or a rank's time has come; calls
  // back for each. False when nothing is under way.
  struct Changed {
    virtual ~Changed() = default;
    virtual void done(Transfer& transfer) = 0;
    virtual void awake(int rank) = 0;
  };
  virtual bool advance(Changed& changed) = 0;
  virtual void wake_at(int rank, double seconds) = 0;
  virtual double now() const = 0;
};

}  // namespace renkei::sim
