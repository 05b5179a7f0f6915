// The last operations of this rank, always recorded: when a job stalls, what each rank was doing is
// the first question, and it must be answered without running the job again.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "comm/buffer/dtype.h"

namespace renkei::comm {

struct OperationRecord {
  int64_t sequence = -1;  // counts the operations of this rank, from 0
  int64_t step = -1;
  std::string operation;
  size_t count = 0;
  DType dtype = DType::f32;
  double entered_seconds = 0;
  std::optional<double> left_seconds;  // empty: still inside
};

class FlightRecorder {
 public:
  explicit FlightRecorder(size_t capacity = 256, const Clock& clock = real_clock());

  int64_t enter(std::string_view operation, int64_t step, size_t count, DType dtype);
  void leave(int64_t sequence);

  // The last operation that was entered; its sequence is -1 when there was none.
  OperationRecord last() const;
  std::vector<OperationRecord> records() const;  // oldest first
  std::string text() const;                      // one line each, for the log

 private:
  mutable std::mutex mutex_;
  const Clock& clock_;
  std::vector<OperationRecord> ring_;
  int64_t next_ = 0;
};

}  // namespace renkei::comm
