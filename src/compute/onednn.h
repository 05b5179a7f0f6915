// What the files that use oneDNN share.
#pragma once

#include <dnnl.hpp>

#include <memory>

namespace renkei::compute {

inline dnnl::engine& onednn_engine() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

inline dnnl::stream& onednn_stream() {
  static thread_local dnnl::stream stream(onednn_engine());
  return stream;
}

// Memory of ours as oneDNN sees it. oneDNN writes only to what a primitive calls its output.
inline dnnl::memory onednn_view(const dnnl::memory::desc& description, const float* data) {
  return {description, onednn_engine(), const_cast<float*>(data)};
}

}  // namespace renkei::compute
