// Each operation that is called while it exists becomes a slice of the timeline, forward and
// backward (--timeline ops). Torch tells when an operation begins and ends; what an operation calls
// itself is part of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>

#include "timeline/recorder.h"

namespace renkei::run {

class OpRecorder {
 public:
  // Of the thread that makes it, which also destroys it; both must outlive it.
  explicit OpRecorder(timeline::Recorder& recorder);
  ~OpRecorder();
  OpRecorder(const OpRecorder&) = delete;
  OpRecorder& operator=(const OpRecorder&) = delete;

  // The task whose operations follow: its step, micro-batch and stage. Between tasks nothing is
  // recorded.
  void begin_task(const timeline::Event& task) { task_ = task; }
  void end_task() { task_.reset(); }

  void begin();  // called by Torch
  void end(const char* name);

 private:
  timeline::Recorder& recorder_;
  std::optional<timeline::Event> task_;
  uint64_t handle_;
  int depth_ = 0;
  double began_ = 0;
  std::unordered_set<std::string> names_;  // slices refer to them
  OpRecorder* before_;
};

}  // namespace renkei::run
