#include "compute/onednn/engine.h"

namespace renkei::compute::onednn {
namespace {

using dnnl::memory;

memory::desc describe(const ImageShape& shape) {
  return {{shape.batch, shape.channels, shape.height, shape.width},
          memory::data_type::f32,
          memory::format_tag::nChw8c};
}

class Pooling : public PoolingKernels {
 public:
  explicit Pooling(const PoolingShape& s)
      : max_(s.max),
        input_(describe(s.input())),
        output_(describe(s.output())),
        forward_description_(engine(), dnnl::prop_kind::forward_training, algorithm(), input_,
                             output_, {s.stride, s.stride}, {s.kernel, s.kernel}, {0, 0},
                             {s.padding, s.padding}, {s.padding, s.padding}),
        backward_description_(engine(), algorithm(), input_, output_, {s.stride, s.stride},
                              {s.kernel, s.kernel}, {0, 0}, {s.padding, s.padding},
                              {s.padding, s.padding}, forward_description_),
        forward_(forward_description_),
        backward_(backward_description_) {}

  size_t workspace_bytes() const override {
    return forward_description_.workspace_desc().get_size();
  }

  void forward(const float* input, float* output, std::byte* workspace) override {
    run(forward_, {{DNNL_ARG_SRC, view(input_, input)}, {DNNL_ARG_DST, view(output_, output)}},
        workspace);
  }

  void backward(const float* output_gradient, const std::byte* workspace,
                float* input_gradient) override {
    run(backward_,
        {{DNNL_ARG_DIFF_DST, view(output_, output_gradient)},
         {DNNL_ARG_DIFF_SRC, view(input_, input_gradient)}},
        workspace);
  }

 private:
  dnnl::algorithm algorithm() const {
    return max_ ? dnnl::algorithm::pooling_max : dnnl::algorithm::pooling_avg_include_padding;
  }

  void run(const dnnl::primitive& primitive, std::unordered_map<int, memory> arguments,
           const std::byte* workspace) const {
    guarded("pooling", [&] {
      if (max_)
        arguments.emplace(DNNL_ARG_WORKSPACE,
                          view(forward_description_.workspace_desc(), workspace));
      primitive.execute(stream(), arguments);
      stream().wait();
    });
  }

  const bool max_;
  const memory::desc input_, output_;
  const dnnl::pooling_forward::primitive_desc forward_description_;
  const dnnl::pooling_backward::primitive_desc backward_description_;
  const dnnl::pooling_forward forward_;
  const dnnl::pooling_backward backward_;
};

}  // namespace

std::unique_ptr<PoolingKernels> make_pooling(const PoolingShape& shape) {
  return std::make_unique<Pooling>(shape);
}

}  // namespace renkei::compute::onednn
