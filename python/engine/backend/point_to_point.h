// Messages between two ranks that are under way. They are done in the order in which they can be,
// not in that of their calls: a program may post a receive, then send, then wait for either. A
// thread that exists while there are some looks after them.
#pragma once

#include <condition_variable>
#include <list>
#include <mutex>
#include <string>
#include <thread>

#include "backend/work.h"
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
  void run();
  bool advance(PendingMessage& message);  // whether it is done, well or not
  bool try_advance(PendingMessage& message);

  comm::Transport& transport_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<PendingMessage> pending_;
  bool ending_ = false;
  int process_ = 0;
  std::thread thread_;
};

}  // namespace renkei::python
