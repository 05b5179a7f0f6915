// All parameters of a network in one buffer, all gradients in another. The tensors of the network
// become views of them, so that broadcast, reduction and update work on one contiguous piece of
// memory and nothing is ever packed or unpacked. Each parameter starts on a cache line. All are of
// one type, f32 or f64.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <string>
#include <vector>

#include "comm/buffer/dtype.h"
#include "run/gradient_sink.h"

namespace renkei::run {

// Zeroed memory of so many numbers, which must stay for as long as the network is used. Where
// gradients lie decides how fast they are reduced; values may be shared with other ranks.
using Allocate = std::function<void*(size_t count, comm::DType dtype)>;
struct FlatMemory {
  Allocate values = {};  // none: the memory is the network's own
  Allocate gradients = {};
  bool fill_values = true;  // false: another rank writes the values to the memory
};

class FlatParameters {
 public:
  // Where a parameter lies in the flat buffers.
  struct Slot {
    torch::Tensor parameter;
    int64_t offset = 0;
    int64_t count = 0;
    bool zeroed = false;  // in this step
  };

  // Moves the parameters into the flat buffer; whoever holds them goes on as before. Kernels find
  // in `sink` where their gradients belong; it must outlive this object.
  FlatParameters(const std::vector<torch::Tensor>& parameters, GradientSink& sink,
                 const FlatMemory& memory = {});
  ~FlatParameters();
  FlatParameters(const FlatParameters&) = delete;
  FlatParameters& operator=(const FlatParameters&) = delete;

  const std::vector<Slot>& slots() const { return slots_; }

  torch::Tensor& values() { return values_; }
  torch::Tensor& gradients() { return gradients_; }
  comm::Buffer value_buffer() const { return as_buffer(values_); }
  comm::Buffer gradient_buffer() const { return as_buffer(gradients_); }

  // Makes the gradients ready for a step: zeroes them, but for those that kernels of ours will
  // replace. To be called after the same function of the sink.
  void begin_step();
  // The gradients of the parameters are those of the flat buffer again.
  void renew_gradients();
  // begin_step() for a caller whose parameters have gradients as autograd leaves them: one that is
  // there is added to, one that is not (none, after zero_grad()) begins with zero.
  void attach_gradients();
  // To be called before gradients of a parameter are reduced: those of a parameter that no kernel
  // has replaced in this step, though it did so in the last one, become zero.
  void settle(const Slot& slot);
  bool is_written(const Slot& slot) const { return sink_.written(slot.parameter); }

 private:
  torch::Tensor gradient_view(const Slot& slot) const;
  void clear(const Slot& slot);
  static comm::Buffer as_buffer(const torch::Tensor& flat);

  GradientSink& sink_;
  std::vector<Slot> slots_;
  torch::Tensor values_;
  torch::Tensor gradients_;
};

}  // namespace renkei::run
