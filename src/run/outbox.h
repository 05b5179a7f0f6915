// Tensors on their way to other ranks, kept until they have left.
#pragma once

#include <torch/torch.h>

#include <list>

#include "comm/transport/transport.h"

namespace renkei::run {

class Outbox {
 public:
  explicit Outbox(comm::Transport& transport) : transport_(transport) {}

  void send(int rank, torch::Tensor tensor, int tag) {
    std::erase_if(pending_, [&](Pending& pending) { return transport_.done(pending.request); });
    tensor = tensor.contiguous();
    const std::span bytes(static_cast<const std::byte*>(tensor.data_ptr()), tensor.nbytes());
    comm::Request request = transport_.send(rank, bytes, tag);
    pending_.push_back({std::move(tensor), std::move(request)});
  }
  void wait(const comm::Call& call) {
    for (Pending& pending : pending_) transport_.wait(pending.request, call);
    pending_.clear();
  }

 private:
  struct Pending {
    torch::Tensor tensor;
    comm::Request request;
  };
  comm::Transport& transport_;
  std::list<Pending> pending_;
};

}  // namespace renkei::run
