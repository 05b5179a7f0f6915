#include <optional>
#include <string>

#include "compute/onednn/engine.h"

namespace renkei::compute::onednn {

using dnnl::memory;
using Tag = memory::format_tag;

namespace {

memory::desc describe(const ImageShape& shape, bool blocked) {
  return {{shape.batch, shape.channels, shape.height, shape.width},
          memory::data_type::f32,
          blocked ? Tag::nChw8c : Tag::nchw};
}

// Copies between layouts; made once for a pair of descriptions.
class Reorder {
 public:
  Reorder(const memory::desc& from, const memory::desc& to, Write write = Write::replace)
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
  bool needed() const { return needed_; }
  size_t size() const { return to_.get_size() / sizeof(float); }  // of the result, in floats
  // The data in the new layout: in scratch memory, or where it is if the layouts are the same.
  memory reordered(const float* from) {
    if (!needed_) return view(from_, from);
    float* to = scratch(to_.get_size() / sizeof(float));
    run(from, to);
    return view(to_, to);
  }
  void run(const float* from, float* to) {
    memory source = view(from_, from), target = view(to_, to);
    primitive_.execute(stream(), source, target);
  }

 private:
  memory::desc from_, to_;
  bool needed_;
  dnnl::reorder primitive_;
};

struct Kernels {
  explicit Kernels(const ConvolutionShape& s)
      : shape(s),
        input(describe(s.input(), s.input_is_blocked())),
        output(describe(s.output(), true)),
        plain_weights({s.out_channels, s.in_channels, s.kernel_height, s.kernel_width},
                      memory::data_type::f32, Tag::oihw),
        any_weights(plain_weights.get_dims(), memory::data_type::f32, Tag::any),
        bias({s.out_channels}, memory::data_type::f32, Tag::x),
        strides{s.stride, s.stride},
        padding{s.padding_height, s.padding_width} {
    // Large filters on pictures have no kernel with a blocked output, only a reference that is a
    // hundred times slower; with a plain output they have one.
    const std::string kernel = describe_forward(false, false).impl_info_str();
    if (kernel.starts_with("ref")) {
      output = describe(s.output(), false);
      to_blocked.emplace(output, describe(s.output(), true));
      to_plain.emplace(describe(s.output(), true), output);
    }
  }

  // The output as the kernels want it: in scratch memory of its own where it must be plain.
  float* output_of(float* blocked) const {
    return to_blocked ? scratch(static_cast<size_t>(shape.output().count()), 1) : blocked;
  }
  const float* gradient_of(const float* blocked) {
    if (!to_plain) return blocked;
    float* plain = scratch(static_cast<size_t>(shape.output().count()), 1);
    to_plain->run(blocked, plain);
    return plain;
  }

  struct Forward {
    dnnl::convolution_forward::primitive_desc description;
    dnnl::convolution_forward primitive;
    Reorder weights;
  };
  struct BackwardInput {
    dnnl::convolution_backward_data::primitive_desc description;
    dnnl::convolution_backward_data primitive;
    Reorder weights;
  };
  struct BackwardWeights {
    dnnl::convolution_backward_weights::primitive_desc description;
    dnnl::convolution_backward_weights primitive;
    Reorder replace, add;
    // Where the kernel has the images plain.
    std::optional<Reorder> input_to_plain, gradient_to_plain;
  };

  dnnl::convolution_forward::primitive_desc describe_forward(bool with_bias, bool relu) const {
    dnnl::primitive_attr attributes;
    if (relu) {
      dnnl::post_ops post;
      post.append_eltwise(dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
      attributes.set_post_ops(post);
    }
    const auto kind = dnnl::prop_kind::forward_training;
    const auto direct = dnnl::algorithm::convolution_direct;
    const memory::desc offset = with_bias ? bias : memory::desc();
    return {engine(), kind,    direct,  input,   any_weights, offset,
            output,   strides, padding, padding, attributes};
  }

  Forward& forward(bool with_bias, bool relu) {
    auto& place = forwards[with_bias][relu];
    if (!place) {
      const auto description = describe_forward(with_bias, relu);
      place.emplace(Forward{description, dnnl::convolution_forward(description),
                            Reorder(plain_weights, description.weights_desc())});
    }
    return *place;
  }

  BackwardInput& backward_input() {
    if (!input_kernel) {
      const dnnl::convolution_backward_data::primitive_desc description(
          engine(), dnnl::algorithm::convolution_direct, input, any_weights, output, strides,
          padding, padding, describe_forward(false, false));
      input_kernel.emplace(BackwardInput{description, dnnl::convolution_backward_data(description),
                                         Reorder(plain_weights, description.weights_desc())});
    }
    return *input_kernel;
  }

  dnnl::convolution_backward_weights::primitive_desc describe_backward_weights(
      const memory::desc& from, const memory::desc& to) const {
    const auto direct = dnnl::algorithm::convolution_direct;
    const dnnl::convolution_forward::primitive_desc forward_of(
        engine(), dnnl::prop_kind::forward_training, direct, from, any_weights, to, strides,
        padding, padding);
    return {engine(), direct, from, any_weights, to, strides, padding, padding, forward_of};
  }

  BackwardWeights& backward_weights() {
    if (weight_kernel) return *weight_kernel;
    auto description = describe_backward_weights(input, output);
    // Small images have no kernel in blocked layout: the reference takes seconds, reordering and
    // the kernel for plain images milliseconds.
    const memory::desc plain_input = describe(shape.input(), false),
                       plain_output = describe(shape.output(), false);
    const bool plain = std::string(description.impl_info_str()).starts_with("ref");
    if (plain) description = describe_backward_weights(plain_input, plain_output);
    weight_kernel.emplace(
        BackwardWeights{description,
                        dnnl::convolution_backward_weights(description),
                        Reorder(description.diff_weights_desc(), plain_weights),
                        Reorder(description.diff_weights_desc(), plain_weights, Write::add),
                        {},
                        {}});
    if (plain) {
      weight_kernel->input_to_plain.emplace(input, plain_input);
      weight_kernel->gradient_to_plain.emplace(output, plain_output);
    }
    return *weight_kernel;
  }

  const ConvolutionShape shape;
  const memory::desc input;
  memory::desc output;
  const memory::desc plain_weights, any_weights, bias;
  const memory::dims strides, padding;
  std::optional<Reorder> to_blocked, to_plain;  // of the output, where the kernels have it plain
  std::optional<Forward> forwards[2][2];        // with bias, with ReLU
  std::optional<BackwardInput> input_kernel;
  std::optional<BackwardWeights> weight_kernel;
};

class OneConvolution : public ConvolutionKernels {
 public:
  explicit OneConvolution(const ConvolutionShape& shape) : kernels_(shape) {}
  void forward(const float* input, const float* weights, const float* bias, bool relu,
               float* output) override;
  void backward_input(const float* output_gradient, const float* weights,
                      float* input_gradient) override;
  void backward_weights(const float* input, const float* output_gradient, Write write,
                        float* weight_gradient) override;

 private:
  Kernels kernels_;
};

void OneConvolution::forward(const float* input, const float* weights, const float* bias, bool relu,
                             float* output) {
  guarded("convolution", [&] {
    Kernels::Forward& kernel = kernels_.forward(bias != nullptr, relu);
    const memory weight_memory = kernel.weights.reordered(weights);
    float* const result = kernels_.output_of(output);
    std::unordered_map<int, memory> arguments{{DNNL_ARG_SRC, view(kernels_.input, input)},
                                              {DNNL_ARG_WEIGHTS, weight_memory},
                                              {DNNL_ARG_DST, view(kernels_.output, result)}};
    if (bias) arguments.emplace(DNNL_ARG_BIAS, view(kernels_.bias, bias));
    kernel.primitive.execute(stream(), arguments);
    if (kernels_.to_blocked) kernels_.to_blocked->run(result, output);
    stream().wait();
  });
}

void OneConvolution::backward_input(const float* output_gradient, const float* weights,
                                    float* input_gradient) {
  guarded("convolution", [&] {
    Kernels::BackwardInput& kernel = kernels_.backward_input();
    const memory weight_memory = kernel.weights.reordered(weights);
    output_gradient = kernels_.gradient_of(output_gradient);
    kernel.primitive.execute(stream(), {{DNNL_ARG_DIFF_DST, view(kernels_.output, output_gradient)},
                                        {DNNL_ARG_WEIGHTS, weight_memory},
                                        {DNNL_ARG_DIFF_SRC, view(kernels_.input, input_gradient)}});
    stream().wait();
  });
}

void OneConvolution::backward_weights(const float* input, const float* output_gradient, Write write,
                                      float* weight_gradient) {
  guarded("convolution", [&] {
    Kernels::BackwardWeights& kernel = kernels_.backward_weights();
    Reorder& reorder = write == Write::add ? kernel.add : kernel.replace;
    const auto& blocked = kernel.description.diff_weights_desc();
    const memory target = view(
        blocked, reorder.needed() ? scratch(blocked.get_size() / sizeof(float)) : weight_gradient);
    output_gradient = kernels_.gradient_of(output_gradient);
    const auto plain_or_as_it_is = [](std::optional<Reorder>& reorder, const float* data,
                                      int slot) {
      if (!reorder || !reorder->needed()) return data;
      float* plain = scratch(reorder->size(), slot);
      reorder->run(data, plain);
      return static_cast<const float*>(plain);
    };
    input = plain_or_as_it_is(kernel.input_to_plain, input, 2);
    output_gradient = plain_or_as_it_is(kernel.gradient_to_plain, output_gradient, 3);
    kernel.primitive.execute(
        stream(), {{DNNL_ARG_SRC, view(kernel.description.src_desc(), input)},
                   {DNNL_ARG_DIFF_DST, view(kernel.description.diff_dst_desc(), output_gradient)},
                   {DNNL_ARG_DIFF_WEIGHTS, target}});
    if (reorder.needed())
      reorder.run(static_cast<const float*>(target.get_data_handle()), weight_gradient);
    stream().wait();
  });
}

}  // namespace

std::unique_ptr<ConvolutionKernels> make_convolution(const ConvolutionShape& shape) {
  return std::make_unique<OneConvolution>(shape);
}

}  // namespace renkei::compute::onednn
