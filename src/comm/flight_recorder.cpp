#include "comm/flight_recorder.h"

#include <fmt/format.h>

#include <algorithm>

namespace renkei::comm {

FlightRecorder::FlightRecorder(size_t capacity, const Clock& clock)
    : clock_(clock), ring_(capacity) {}

int64_t FlightRecorder::enter(std::string_view operation, int64_t step, size_t count, DType dtype) {
  const std::lock_guard lock(mutex_);
  OperationRecord& record = ring_[static_cast<size_t>(next_) % ring_.size()];
  record.sequence = next_;
  record.step = step;
  record.operation.assign(operation);  // keeps the memory of the record that it replaces
  record.count = count;
  record.dtype = dtype;
  record.entered_seconds = clock_.seconds();
  record.left_seconds.reset();
  return next_++;
}

void FlightRecorder::leave(int64_t sequence) {
  const std::lock_guard lock(mutex_);
  OperationRecord& record = ring_[static_cast<size_t>(sequence) % ring_.size()];
  if (record.sequence == sequence) record.left_seconds = clock_.seconds();
}

OperationRecord FlightRecorder::last() const {
  const std::lock_guard lock(mutex_);
  return next_ == 0 ? OperationRecord{} : ring_[static_cast<size_t>(next_ - 1) % ring_.size()];
}

std::vector<OperationRecord> FlightRecorder::records() const {
  const std::lock_guard lock(mutex_);
  std::vector<OperationRecord> list;
  const int64_t kept = std::min<int64_t>(next_, static_cast<int64_t>(ring_.size()));
  for (int64_t s = next_ - kept; s < next_; ++s)
    list.push_back(ring_[static_cast<size_t>(s) % ring_.size()]);
  return list;
}

std::string FlightRecorder::text() const {
  const double now = clock_.seconds();
  std::string lines;
  for (const OperationRecord& record : records()) {
    const std::string state =
        record.left_seconds
            ? fmt::format("took {:.6f} s", *record.left_seconds - record.entered_seconds)
            : "still inside";
    lines += fmt::format("#{} step {}: {} of {} {}, entered {:.3f} s ago, {}\n", record.sequence,
                         record.step, record.operation, record.count, name_of(record.dtype),
                         now - record.entered_seconds, state);
  }
  return lines;
}

}  // namespace renkei::comm
