#include "comm/allreduce/ring.h"

#include <algorithm>
#include <deque>
#include <numeric>

#include "comm/buffer/chunk_range.h"
#include "comm/buffer/scratch.h"
#include "comm/choice/topology.h"
#include "comm/collectives/exchange.h"

namespace renkei::comm {
namespace {

// Messages are the segments themselves.
class PlainPayload : public RingPayload {
 public:
  PlainPayload(const std::vector<Buffer>& chunks, Reduction reduction, size_t segment_bytes)
      : reduction_(reduction), ranks_(static_cast<int>(chunks.size())) {
    for (const Buffer& chunk : chunks) chunks_.emplace_back(chunk, segment_bytes);
  }
  size_t segments(int c) const override { return chunks_[static_cast<size_t>(c)].size(); }
  std::span<std::byte> message(int c, size_t g) override { return at(c, g).span(); }
  void before_send(int, size_t) override {}
  void reduce_arrival(int c, size_t g, std::span<std::byte> arrived) override {
    reduce(at(c, g), {arrived.data(), at(c, g).count, at(c, g).dtype}, reduction_);
  }
  void complete(int c, size_t g) override { finish_mean(at(c, g), reduction_, ranks_); }
  void after_receive(int, size_t) override {}

 private:
  Buffer at(int c, size_t g) const { return chunks_[static_cast<size_t>(c)][g]; }
  std::vector<Segments> chunks_;
  Reduction reduction_;
  int ranks_;
};

// One rank's way through the steps. Arrivals are numbered in the order in which they come. Only
// what is under way has a place in memory: a simulation runs thousands of ranks in one process.
class RingRun {
 public:
  RingRun(Transport& transport, RingPayload& payload, const std::vector<int>& order,
          RingSteps steps, const Call& call)
      : transport_(transport), payload_(payload), steps_(steps), call_(call) {
    n_ = transport.size();
    place_ = place_of(order, transport.rank());
    left_ = order[static_cast<size_t>(wrap(place_ - 1, n_))];
    right_ = order[static_cast<size_t>(wrap(place_ + 1, n_))];
    size_t all_segments = 0;
    std::span<std::byte> largest;
    for (int c = 0; c < n_; ++c) {
      all_segments += payload.segments(c);
      for (size_t g = 0; g < payload.segments(c); ++g)
        if (payload.message(c, g).size() > largest.size()) largest = payload.message(c, g);
    }
    // A window no wider than the ring: a segment comes back (complete) all_segments arrivals after
    // the one that let us send it, and its receive must not be posted before that send.
    window_ = std::clamp<size_t>(all_segments, 1, kReceiveWindow);
    receiving_.resize(window_);
    slot_bytes_ = largest.size();
    if (begins_partial()) scratch_ = Scratch(largest, window_ * slot_bytes_);
    posting_ = taking_ = at_or_after({0, steps.begin, 0});
  }

  void run() {
    const int first = wrap(place_ - steps_.begin - 1, n_);
    // Receives that need no memory of the buffer go first: over a transport on which a send waits
    // for its receive, they are what lets the left neighbour's first sends complete.
    post_below(window_, Only::partial);
    for (size_t g = 0; g < payload_.segments(first); ++g) {
      if (begins_partial())
        payload_.before_send(first, g);
      else
        payload_.complete(first, g);
      send(first, g);
    }
    for (; taking_.step < steps_.end; taking_ = next(taking_)) {
      post_below(taking_.number + window_, Only::any);
      transport_.wait(receiving(taking_), call_);
      take(taking_);
    }
    for (Request& request : sending_) transport_.wait(request, call_);
  }

 private:
  enum class Only { partial, any };
  // Segment g of the chunk that arrives in a step.
  struct Arrival {
    size_t number;
    int step;
    size_t g;
  };
  int chunk(const Arrival& arrival) const { return wrap(place_ - arrival.step - 2, n_); }
  Arrival at_or_after(Arrival arrival) const {
    while (arrival.step < steps_.end && arrival.g == payload_.segments(chunk(arrival)))
      arrival = {arrival.number, arrival.step + 1, 0};
    return arrival;
  }
  Arrival next(const Arrival& arrival) const {
    return at_or_after({arrival.number + 1, arrival.step, arrival.g + 1});
  }

  bool begins_partial() const { return steps_.begin < n_ - 1; }
  bool is_partial(const Arrival& arrival) const { return arrival.step < n_ - 1; }
  Request& receiving(const Arrival& arrival) { return receiving_[arrival.number % window_]; }
  void send(int c, size_t g) {
    sending_.push_back(
        transport_.send(right_, payload_.message(c, g), static_cast<int>(Tag::ring)));
  }
  std::span<std::byte> slot(const Arrival& arrival) const {
    return scratch_.span(arrival.number % window_ * slot_bytes_,
                         payload_.message(chunk(arrival), arrival.g).size());
  }

  void post_below(size_t limit, Only only) {
    for (; posting_.number < limit && posting_.step < steps_.end; posting_ = next(posting_)) {
      const bool partial = is_partial(posting_);
      if (only == Only::partial && !partial) return;
      // A complete segment overwrites the partial one, which must have left. Segments come back in
      // the order in which they were sent: it is the oldest that was not waited for.
      if (!partial && begins_partial()) {
        transport_.wait(sending_.front(), call_);
        sending_.pop_front();
      }
      receiving(posting_) = transport_.receive(
          left_, partial ? slot(posting_) : payload_.message(chunk(posting_), posting_.g),
          static_cast<int>(Tag::ring));
    }
  }

  void take(const Arrival& arrival) {
    const int c = chunk(arrival);
    const size_t g = arrival.g;
    const bool forwards = arrival.step + 1 < steps_.end;
    if (is_partial(arrival)) {
      payload_.reduce_arrival(c, g, slot(arrival));
      if (arrival.step == n_ - 2)
        payload_.complete(c, g);
      else if (forwards)
        payload_.before_send(c, g);
    }
    if (forwards) send(c, g);
    if (!is_partial(arrival)) payload_.after_receive(c, g);
  }

  Transport& transport_;
  RingPayload& payload_;
  RingSteps steps_;
  const Call& call_;
  int n_ = 0, place_ = 0, left_ = 0, right_ = 0;
  size_t window_ = 0, slot_bytes_ = 0;
  Arrival posting_, taking_;
  std::vector<Request> receiving_;  // by number modulo window
  std::deque<Request> sending_;     // oldest first
  Scratch scratch_;
};

}  // namespace

std::vector<int> checked_order(const std::vector<int>& order, int ranks) {
  if (!order.empty()) {
    check_ring_order(order, ranks);
    return order;
  }
  std::vector<int> by_rank(static_cast<size_t>(ranks));
  std::iota(by_rank.begin(), by_rank.end(), 0);
  return by_rank;
}

int place_of(const std::vector<int>& order, int rank) {
  return static_cast<int>(std::find(order.begin(), order.end(), rank) - order.begin());
}

std::vector<Buffer> chunks_by_place(Buffer buffer, const std::vector<int>& order) {
  std::vector<Buffer> chunks;
  for (const int rank : order) {
    const Range range = chunk_range(buffer.count, static_cast<int>(order.size()), rank);
    chunks.push_back(buffer.part(range.begin, range.size()));
  }
  return chunks;
}

void run_ring(Transport& transport, RingPayload& payload, const std::vector<int>& order,
              RingSteps steps, const Call& call) {
  if (transport.size() > 1) RingRun(transport, payload, order, steps, call).run();
}

void ring_allreduce(Transport& transport, Buffer buffer, Reduction reduction, const Call& call,
                    const RingOptions& options) {
  const std::vector<int> order = checked_order(options.order, transport.size());
  PlainPayload payload(chunks_by_place(buffer, order), reduction, options.segment_bytes);
  run_ring(transport, payload, order, {0, 2 * transport.size() - 2}, call);
}

Buffer ring_reduce_scatter(Transport& transport, Buffer buffer, Reduction reduction,
                           const Call& call, const RingOptions& options) {
  const std::vector<int> order = checked_order(options.order, transport.size());
  const std::vector<Buffer> chunks = chunks_by_place(buffer, order);
  PlainPayload payload(chunks, reduction, options.segment_bytes);
  run_ring(transport, payload, order, {0, transport.size() - 1}, call);
  return chunks[static_cast<size_t>(place_of(order, transport.rank()))];
}

void ring_all_gather(Transport& transport, std::vector<Buffer> parts, const Call& call,
                     const RingOptions& options) {
  const std::vector<int> order = checked_order(options.order, transport.size());
  std::vector<Buffer> by_place;
  for (const int rank : order) by_place.push_back(parts[static_cast<size_t>(rank)]);
  PlainPayload payload(by_place, Reduction::sum, options.segment_bytes);
  run_ring(transport, payload, order, {transport.size() - 1, 2 * transport.size() - 2}, call);
}

}  // namespace renkei::comm
