#include "comm/ring.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "comm/chunk_range.h"
#include "comm/exchange.h"
#include "comm/topology.h"

namespace renkei::comm {
namespace {

// Messages are the segments themselves.
class PlainPayload : public RingPayload {
 public:
  PlainPayload(const std::vector<Buffer>& chunks, Reduction reduction, size_t segment_bytes)
      : reduction_(reduction), ranks_(static_cast<int>(chunks.size())) {
    for (const Buffer& chunk : chunks) segments_.push_back(segments_of(chunk, segment_bytes));
  }
  size_t segments(int c) const override { return segments_[static_cast<size_t>(c)].size(); }
  std::span<std::byte> message(int c, size_t g) override { return at(c, g).span(); }
  void before_send(int, size_t) override {}
  void reduce_arrival(int c, size_t g, std::span<std::byte> arrived) override {
    reduce(at(c, g), {arrived.data(), at(c, g).count, at(c, g).dtype}, reduction_);
  }
  void complete(int c, size_t g) override { finish_mean(at(c, g), reduction_, ranks_); }
  void after_receive(int, size_t) override {}

 private:
  Buffer at(int c, size_t g) const { return segments_[static_cast<size_t>(c)][g]; }
  std::vector<std::vector<Buffer>> segments_;
  Reduction reduction_;
  int ranks_;
};

struct Arrival {
  int step;
  int c;
  size_t g;
};

// One rank's way through the steps. Arrivals are numbered in the order in which they come.
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
    for (int c = 0; c < n_; ++c) {
      sending_.emplace_back(payload.segments(c));
      all_segments += payload.segments(c);
      for (size_t g = 0; g < payload.segments(c); ++g)
        slot_bytes_ = std::max(slot_bytes_, payload.message(c, g).size());
    }
    for (int s = steps.begin; s < steps.end; ++s) {
      const int c = wrap(place_ - s - 2, n_);
      for (size_t g = 0; g < payload.segments(c); ++g) arrivals_.push_back({s, c, g});
    }
    // A window no wider than the ring: a segment comes back (complete) all_segments arrivals after
    // the one that let us send it, and its receive must not be posted before that send.
    window_ = std::clamp<size_t>(all_segments, 1, kReceiveWindow);
    receiving_.resize(arrivals_.size());
    if (steps.begin < n_ - 1)
      scratch_ = std::make_unique_for_overwrite<std::byte[]>(window_ * slot_bytes_);
  }

  void run() {
    const int first = wrap(place_ - steps_.begin - 1, n_);
    // Receives that need no memory of the buffer go first: over a transport on which a send waits
    // for its receive, they are what lets the left neighbour's first sends complete.
    post_below(window_, Only::partial);
    for (size_t g = 0; g < payload_.segments(first); ++g) {
      if (steps_.begin < n_ - 1)
        payload_.before_send(first, g);
      else
        payload_.complete(first, g);
      send(first, g);
    }
    for (size_t k = 0; k < arrivals_.size(); ++k) {
      post_below(k + window_, Only::any);
      transport_.wait(receiving_[k], call_);
      take(k);
    }
    for (std::vector<Request>& requests : sending_)
      for (Request& request : requests) transport_.wait(request, call_);
  }

 private:
  enum class Only { partial, any };
  bool is_partial(const Arrival& arrival) const { return arrival.step < n_ - 1; }
  Request& sending(int c, size_t g) { return sending_[static_cast<size_t>(c)][g]; }
  void send(int c, size_t g) {
    sending(c, g) = transport_.send(right_, payload_.message(c, g), static_cast<int>(Tag::ring));
  }
  std::span<std::byte> slot(size_t k) const {
    const Arrival& arrival = arrivals_[k];
    return {scratch_.get() + k % window_ * slot_bytes_,
            payload_.message(arrival.c, arrival.g).size()};
  }

  void post_below(size_t limit, Only only) {
    for (; posted_ < std::min(limit, arrivals_.size()); ++posted_) {
      const Arrival& arrival = arrivals_[posted_];
      if (only == Only::partial && !is_partial(arrival)) return;
      // The complete segment overwrites the partial one, which must have left.
      if (!is_partial(arrival)) transport_.wait(sending(arrival.c, arrival.g), call_);
      receiving_[posted_] = transport_.receive(
          left_, is_partial(arrival) ? slot(posted_) : payload_.message(arrival.c, arrival.g),
          static_cast<int>(Tag::ring));
    }
  }

  void take(size_t k) {
    const auto [step, c, g] = arrivals_[k];
    const bool forwards = step + 1 < steps_.end;
    if (step < n_ - 1) {
      payload_.reduce_arrival(c, g, slot(k));
      if (step == n_ - 2)
        payload_.complete(c, g);
      else if (forwards)
        payload_.before_send(c, g);
    }
    if (forwards) send(c, g);
    if (step >= n_ - 1) payload_.after_receive(c, g);
  }

  Transport& transport_;
  RingPayload& payload_;
  RingSteps steps_;
  const Call& call_;
  int n_ = 0, place_ = 0, left_ = 0, right_ = 0;
  size_t window_ = 0, slot_bytes_ = 0, posted_ = 0;
  std::vector<Arrival> arrivals_;
  std::vector<Request> receiving_;             // by arrival
  std::vector<std::vector<Request>> sending_;  // by chunk and segment
  std::unique_ptr<std::byte[]> scratch_;
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
