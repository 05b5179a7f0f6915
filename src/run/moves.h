// Pieces of tensors on their way between ranks, many at a time. All ranks add the moves in the same
// order, each with the tensors that it has.
#pragma once

#include <torch/torch.h>

#include <vector>

#include "run/outbox.h"

namespace renkei::run {

class Moves {
 public:
  Moves(comm::Transport& transport, Outbox& outbox, int tag)
      : transport_(transport), outbox_(outbox), tag_(tag) {}

  // `source` on rank `from`, `place` on rank `to`; nothing on others.
  void add(int from, int to, const torch::Tensor& source, const torch::Tensor& place) {
    const int here = transport_.rank();
    if (from == here && to == here) {
      place.copy_(source);
    } else if (to == here) {
      Arrival arrival{.place = place,
                      .buffer = place.is_contiguous()
                                    ? place
                                    : torch::empty_like(place, torch::MemoryFormat::Contiguous)};
      const std::span bytes(static_cast<std::byte*>(arrival.buffer.data_ptr()),
                            arrival.buffer.nbytes());
      arrival.request = transport_.receive(from, bytes, tag_);
      arrivals_.push_back(std::move(arrival));
    } else if (from == here) {
      leaving_.push_back({to, source});
    }
  }
  // When all were added: receives come before sends, so that no rank waits in a circle.
  void send() {
    for (Departure& one : leaving_) outbox_.send(one.to, one.tensor, tag_);
    leaving_.clear();
  }
  void finish(const comm::Call& call) {
    send();
    for (Arrival& arrival : arrivals_) {
      transport_.wait(arrival.request, call);
      if (!arrival.buffer.is_same(arrival.place)) arrival.place.copy_(arrival.buffer);
    }
    arrivals_.clear();
  }

 private:
  struct Arrival {
    torch::Tensor place, buffer;
    comm::Request request = {};
  };
  struct Departure {
    int to;
    torch::Tensor tensor;
  };
  comm::Transport& transport_;
  Outbox& outbox_;
  int tag_;
  std::vector<Arrival> arrivals_;
  std::vector<Departure> leaving_;
};

}  // namespace renkei::run
