// Messages between two ranks that are under way. They are done in the order in which they can be,
// not in that of their calls: a program may post a receive, then send, then wait for either. While
// there are some, a thread looks after them.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "backend/work.h"
#include "backend/worker.h"
#include "comm/transport/transport.h"

namespace renkei::python {

struct PendingMessage {
  c10::intrusive_ptr<BackendWork> work;
  at::Tensor given;   // by the caller
  at::Tensor memory;  // contiguous: the same, or a copy
  std::string operation;
  comm::Request request;
  int peer = -1;  // -1: a receive from whoever sends first
  int tag = 0;
  double end_seconds = 0, timeout_seconds = 0;
  bool receives = false;
};

class PointToPoint {
 public:
  explicit PointToPoint(comm::Transport& transport) : transport_(transport) {}
  ~PointToPoint();  // those under way fail
  PointToPoint(const PointToPoint&) = delete;
  PointToPoint& operator=(const PointToPoint&) = delete;

  // Its work is done when this returns, or later.
  void add(PendingMessage message);

 private:
  struct Done {
    c10::intrusive_ptr<BackendWork> work;
    std::exception_ptr failure;
  };

  Worker::Rest look();  // until some are done
  std::optional<Done> advance(PendingMessage& message);
  bool try_advance(PendingMessage& message);

  comm::Transport& transport_;
  std::mutex mutex_;
  std::list<PendingMessage> pending_;
  bool looking_ = false;
  std::atomic<bool> ending_ = false;
  std::unique_ptr<Worker> worker_ = std::make_unique<Worker>();
};

}  // namespace renkei::python
