// Copies between layouts; made once for a pair of descriptions.
#pragma once

#include "compute/onednn/engine.h"

namespace renkei::compute::onednn {

class Reorder {
 public:
  Reorder(const dnnl::memory::desc& from, const dnnl::memory::desc& to,
          Write write = Write::replace)
      : from_(from), to_(to), needed_(from != to || write == Write::add) {
    if (!needed_) return;
    dnnl::primitive_attr attributes;
    if (write == Write::add) {
      dnnl::post_ops add;
      add.append_sum(1.0f);
      attributes.set_post_ops(add);
    }
    primitive_ =
        dnnl::reorder(dnnl::reorder::primitive_desc(engine(), from, engine(), to, attributes));
  }

  // The data in the new layout: in scratch memory, or where it is if the layouts are the same.
  dnnl::memory there(const float* from, int slot) const {
    if (!needed_) return view(from_, from);
    dnnl::memory to = view(to_, scratch(to_.get_size() / sizeof(float), slot));
    run(view(from_, from), to);
    return to;
  }

  // Where to write what back() then brings to `to`.
  dnnl::memory before(float* to, int slot) const {
    return view(from_, needed_ ? scratch(from_.get_size() / sizeof(float), slot) : to);
  }
  void back(const dnnl::memory& from, float* to) const {
    if (needed_) run(from, view(to_, to));
  }

 private:
  void run(dnnl::memory from, dnnl::memory to) const { primitive_.execute(stream(), from, to); }

  dnnl::memory::desc from_, to_;
  bool needed_;
  dnnl::reorder primitive_;
};

}  // namespace renkei::compute::onednn
