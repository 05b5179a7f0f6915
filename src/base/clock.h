#pragma once

#include <chrono>

namespace renkei {

// Seconds of a clock that never jumps; only differences mean something.
inline double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Seconds since 1970, for records that people and other tools read.
inline double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Where code takes the time from that also runs in a simulation: the first clock of above, unless a
// class derived from this one has another. Whoever is handed a clock must not outlive it.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual double seconds() const { return now_seconds(); }
};

inline const Clock& real_clock() {
  static const Clock clock;
  return clock;
}

}  // namespace renkei
