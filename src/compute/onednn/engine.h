// What the files that call oneDNN share.
#pragma once

#include <fmt/core.h>

#include <memory>
#include <oneapi/dnnl/dnnl.hpp>

#include "base/error.h"
#include "compute/onednn/interface.h"

namespace renkei::compute::onednn {

inline dnnl::engine& engine() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

inline dnnl::stream& stream() {
  static thread_local dnnl::stream stream(engine());
  return stream;
}

// Memory of ours as oneDNN sees it. oneDNN writes only to what a primitive calls its output.
inline dnnl::memory view(const dnnl::memory::desc& description, const void* data) {
  return {description, engine(), const_cast<void*>(data)};
}

// The scratch memory of the program that has loaded this module.
float* scratch(size_t count, int slot = 0);

// oneDNN's exceptions are not for the other side of the module's border.
template <typename Work>
auto guarded(const char* what, Work work) {
  try {
    return work();
  } catch (const dnnl::error& error) {
    const bool memory = error.status == dnnl_out_of_memory;
    throw Error(memory ? ErrorCode::memory : ErrorCode::bug,
                fmt::format("oneDNN cannot compute a {}: {}.", what, error.what()));
  }
}

std::unique_ptr<ConvolutionKernels> make_convolution(const ConvolutionShape& shape);
void multiply(const MatrixProduct& product, const float* a, const float* b, float* c);

}  // namespace renkei::compute::onednn
