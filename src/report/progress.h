#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace renkei::report {

struct ProgressOptions {
  bool terminal = false;  // redraw one line, or else write a line now and then
  int columns = 0;        // of the terminal; 0 asks it at each drawing, since windows change
  std::function<void(std::string_view)> sink = {};  // empty: stderr
  double (*clock)() = now_seconds;
  double redraw_seconds = 0.1;  // at least this long between two drawings on a terminal
  double line_seconds = 5;      // and between two lines elsewhere
};

// For stderr as it is: a bar when it is a terminal.
ProgressOptions progress_on_stderr();

// How far the work is. "{label} {done}/{total} {unit}": in training the label is "epoch 2/5  step"
// and the unit is empty; for a data set they may be "writing" and "images".
struct ProgressState {
  std::string label = {};
  int64_t done = 0;
  std::optional<int64_t> total = {};  // when it is known
  std::string unit = {};
  std::optional<double> rate = {};  // per second; measured from `done` when it is not given
  std::string rate_unit = {};       // "samples"; `unit` when it is empty
  std::optional<double> loss = {};
};

// Shows how far the work is:
//
//   epoch 2/5  step 120/300  [########............]  1234 samples/s  loss 0.123  0:42 left
//
// What does not fit in the width is left out, the bar first. Not for several threads at once.
class Progress {
 public:
  explicit Progress(ProgressOptions options);
  ~Progress();  // leaves an unfinished bar as it is, and the cursor below it
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Cheap: most calls draw nothing. The first one starts the clock, so that a slow first step does
  // not spoil the estimate.
  void update(ProgressState state);
  void finish();  // draws the last state whatever the time, with what it took

 private:
  std::string line(bool finished) const;
  std::string measured_rate() const;
  std::string time_left() const;
  int columns() const;
  void draw(bool finished);

  ProgressOptions options_;
  ProgressState state_;
  std::optional<double> begin_seconds_;  // of the first update
  double start_seconds_ = 0;             // of the count from which the rate is measured
  int64_t start_done_ = 0;
  double now_ = 0;
  double drawn_seconds_ = 0;
  bool line_open_ = false;  // a bar stands on the terminal without a line break
  bool finished_ = false;
};

}  // namespace renkei::report
