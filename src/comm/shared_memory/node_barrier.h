// A barrier among the ranks of one host, in memory that they share, which also compares what the
// ranks are doing.
//
// Each rank owns two cache lines. A line holds the number of barriers that its rank has arrived at
// and a description of the operation that the rank is in; operations alternate between the lines.
// A rank writes its own lines only and polls those of the others, so that an arrival costs each
// peer one transfer of a cache line, in which the description comes along. The line of operation k
// is written again in operation k + 2, which no rank can reach before all have entered k + 1 and so
// have read what k said.
//
// Waiting polls for a few microseconds, then lets other threads run, then sleeps. Where the ranks
// have fewer cores than they are, polling would only keep the awaited ones from running. The last
// rank to arrive wakes all that sleep; who sleeps looks at the deadline every 50 ms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/buffer/dtype.h"
#include "comm/buffer/reduce.h"
#include "comm/transport/transport.h"

namespace renkei::comm {

enum class OperationKind : uint8_t {
  none,
  barrier,
  allocate,
  allreduce,
  reduce_scatter,
  all_gather,
  exchange,
  close
};

std::string_view name_of(OperationKind kind);

// What all ranks must agree on when they enter an operation, beside the step and the first 24
// characters of the name in their Call.
struct Operation {
  OperationKind kind = OperationKind::barrier;
  DType dtype = DType::u8;
  Reduction reduction = Reduction::sum;
  uint64_t count = 0;
  uint64_t place = 0;  // where the buffer lies in shared memory; 0 if it is private
};

class NodeBarrier {
 public:
  // Bytes that each part of the region must have from `offset` on, which is a multiple of 64. They
  // must be zero at first.
  static constexpr size_t kBytes = 512;

  // Does not wait. The transport must outlive the barrier.
  NodeBarrier(Transport& transport, std::shared_ptr<SharedRegion> region, size_t offset = 0);
  // Ranks that wait for this one, now or later, fail at once instead of at their deadline.
  ~NodeBarrier();
  NodeBarrier(const NodeBarrier&) = delete;
  NodeBarrier& operator=(const NodeBarrier&) = delete;

  int local_rank() const { return me_; }
  int local_size() const { return static_cast<int>(ranks_.size()); }
  int64_t operations() const { return static_cast<int64_t>(operation_); }  // entered so far

  // A barrier at the beginning of an operation. Throws a communication Error that names two ranks
  // and both of their operations when not all ranks have entered the same.
  void enter(const Operation& operation, const Call& call = {});

  // A barrier inside the operation that was entered last. Like enter, it throws a Timeout that
  // names the rank which has not arrived when call.timeout_seconds have passed, or when that rank
  // has left.
  void arrive_and_wait(const Call& call = {});

 private:
  struct Line;
  struct Meeting;
  struct Entry;

  bool all_arrived() const;
  int first_missing() const;
  void arrive();
  void wait(const Call& call);
  void wait_longer(const Call& call);
  void sleep();
  void check_missing(const Call& call, double waited_seconds) const;
  void compare_entries() const;
  Entry last_entry(int local) const;
  void learn_cores();
  std::string name_rank(int local) const;

  Line& line(int local) const;

  Transport& transport_;
  std::shared_ptr<SharedRegion> region_;
  std::vector<int> ranks_;          // of this host
  std::vector<std::byte*> memory_;  // of each of them, from the offset on
  Meeting* meeting_ = nullptr;      // in the memory of the first
  int me_ = 0;                      // index into ranks_
  uint64_t sequence_ = 0;           // barriers arrived at
  uint64_t operation_ = 0;          // operations entered
  int polls_ = 16;                  // before a wait lets others run
  bool crowded_ = false;            // more ranks than cores
  bool cores_known_ = false;
  int process_ = 0;  // a child that was forked has a copy of this object, but is no rank
};

}  // namespace renkei::comm
