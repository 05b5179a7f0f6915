#include "compute/pooling.h"

#include <map>

#include "compute/onednn.h"

namespace renkei::compute {
namespace {

using dnnl::memory;

memory::desc describe(const ImageShape& shape) {
  return {{shape.batch, shape.channels, shape.height, shape.width},
          memory::data_type::f32,
          memory::format_tag::nChw8c};
}

struct Kernels {
  explicit Kernels(const PoolingShape& s)
      : algorithm(s.max ? dnnl::algorithm::pooling_max
                        : dnnl::algorithm::pooling_avg_include_padding),
        input(describe(s.input())),
        output(describe(s.output())),
        forward_description({dnnl::prop_kind::forward_training,
                             algorithm,
                             input,
                             output,
                             {s.stride, s.stride},
                             {s.kernel, s.kernel},
                             {s.padding, s.padding},
                             {s.padding, s.padding}},
                            onednn_engine()),
        backward_description({algorithm,
                              input,
                              output,
                              {s.stride, s.stride},
                              {s.kernel, s.kernel},
                              {s.padding, s.padding},
                              {s.padding, s.padding}},
                             onednn_engine(), forward_description),
        forward(forward_description),
        backward(backward_description) {}

  memory workspace(const std::byte* bytes) const {
    return {forward_description.workspace_desc(), onednn_engine(), const_cast<std::byte*>(bytes)};
  }

  dnnl::algorithm algorithm;
  memory::desc input, output;
  dnnl::pooling_forward::primitive_desc forward_description;
  dnnl::pooling_backward::primitive_desc backward_description;
  dnnl::pooling_forward forward;
  dnnl::pooling_backward backward;
};

Kernels& kernels_for(const PoolingShape& shape) {
  static thread_local std::map<PoolingShape, Kernels> made;
  return made.try_emplace(shape, shape).first->second;
}

}  // namespace

size_t pooling_workspace_bytes(const PoolingShape& shape) {
  return shape.max ? kernels_for(shape).forward_description.workspace_desc().get_size() : 0;
}

void pooling_forward(const PoolingShape& shape, const float* input, float* output,
                     std::byte* workspace) {
  Kernels& kernels = kernels_for(shape);
  std::unordered_map<int, memory> arguments{{DNNL_ARG_SRC, onednn_view(kernels.input, input)},
                                            {DNNL_ARG_DST, onednn_view(kernels.output, output)}};
  if (shape.max) arguments.emplace(DNNL_ARG_WORKSPACE, kernels.workspace(workspace));
  kernels.forward.execute(onednn_stream(), arguments);
  onednn_stream().wait();
}

void pooling_backward(const PoolingShape& shape, const float* output_gradient,
                      const std::byte* workspace, float* input_gradient) {
  Kernels& kernels = kernels_for(shape);
  std::unordered_map<int, memory> arguments{
      {DNNL_ARG_DIFF_DST, onednn_view(kernels.output, output_gradient)},
      {DNNL_ARG_DIFF_SRC, onednn_view(kernels.input, input_gradient)}};
  if (shape.max) arguments.emplace(DNNL_ARG_WORKSPACE, kernels.workspace(workspace));
  kernels.backward.execute(onednn_stream(), arguments);
  onednn_stream().wait();
}

}  // namespace renkei::compute
