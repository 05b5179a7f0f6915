// For some shapes oneDNN has no kernel with images in the layout that they have, only a reference
// that is a hundred times slower: large filters on pictures, gradients of small images, groups of
// few channels. Then the images are brought to the layout that oneDNN prefers, or to the plain one.

#include <array>
#include <optional>
#include <string>

#include "compute/onednn/reorder.h"

namespace renkei::compute::onednn {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;

constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;
constexpr auto kTraining = dnnl::prop_kind::forward_training;

memory::desc describe(const ImageShape& s, Tag tag) {
  return {{s.batch, s.channels, s.height, s.width}, memory::data_type::f32, tag};
}

memory::desc describe(const ImageShape& shape) {
  if (!shape.can_be_blocked()) return describe(shape, Tag::nchw);
  return describe(shape, shape.block == 16 ? Tag::nChw16c : Tag::nChw8c);
}

memory::desc describe_weights(const ConvolutionShape& s, bool plain) {
  const memory::dims dims = {s.out_channels / s.groups, s.in_channels / s.groups, s.kernel_height,
                             s.kernel_width};
  if (s.groups == 1) return {dims, memory::data_type::f32, plain ? Tag::oihw : Tag::any};
  memory::dims grouped = {s.groups};
  grouped.insert(grouped.end(), dims.begin(), dims.end());
  return {grouped, memory::data_type::f32, plain ? Tag::goihw : Tag::any};
}

struct Layouts {
  memory::desc input, output;
};

// Memory that kernels need while they compute comes from the program, which counts it.
dnnl::primitive_attr own_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}
memory scratchpad_of(const memory::desc& description) {
  constexpr int kSlot = 4;  // the others hold what is reordered
  return view(description, scratch(description.get_size() / sizeof(float) + 1, kSlot));
}

class Kernels : public ConvolutionKernels {
 public:
  explicit Kernels(const ConvolutionShape& s)
      : given_{describe(s.input()), describe(s.output())},
        choices_{given_, Layouts{describe(s.input(), Tag::any), describe(s.output(), Tag::any)},
                 Layouts{describe(s.input(), Tag::nchw), describe(s.output(), Tag::nchw)}},
        plain_weights_(describe_weights(s, true)),
        any_weights_(describe_weights(s, false)),
        bias_({s.out_channels}, memory::data_type::f32, Tag::x),
        strides_{s.stride_height, s.stride_width},
        dilation_{s.dilation_height - 1, s.dilation_width - 1},
        padding_{s.padding_height, s.padding_width} {}

  void forward(const float* input, const float* weights, const float* bias,
               float* output) override {
    guarded("convolution", [&] {
      const Forward& kernel = forward_kernel(bias != nullptr);
      const memory to = kernel.output.before(output, 1);
      std::unordered_map<int, memory> arguments{
          {DNNL_ARG_WEIGHTS, kernel.weights.there(weights, 0)},
          {DNNL_ARG_SRC, kernel.input.there(input, 2)},
          {DNNL_ARG_DST, to}};
      if (bias) arguments.emplace(DNNL_ARG_BIAS, view(bias_, bias));
      arguments.emplace(DNNL_ARG_SCRATCHPAD, scratchpad_of(kernel.scratchpad));
      kernel.primitive.execute(stream(), arguments);
      kernel.output.back(to, output);
      stream().wait();
    });
  }

  void backward_input(const float* output_gradient, const float* weights,
                      float* input_gradient) override {
    guarded("gradient of a convolution's input", [&] {
      const BackwardInput& kernel = input_kernel();
      const memory to = kernel.input.before(input_gradient, 2);
      kernel.primitive.execute(stream(),
                               {{DNNL_ARG_WEIGHTS, kernel.weights.there(weights, 0)},
                                {DNNL_ARG_DIFF_DST, kernel.output.there(output_gradient, 1)},
                                {DNNL_ARG_DIFF_SRC, to},
                                {DNNL_ARG_SCRATCHPAD, scratchpad_of(kernel.scratchpad)}});
      kernel.input.back(to, input_gradient);
      stream().wait();
    });
  }

  void backward_weights(const float* input, const float* output_gradient, Write write,
                        float* weight_gradient) override {
    guarded("gradient of a convolution's weights", [&] {
      const BackwardWeights& kernel = weight_kernel();
      const Reorder& weights = write == Write::add ? kernel.add : kernel.replace;
      const memory to = weights.before(weight_gradient, 0);
      kernel.primitive.execute(stream(),
                               {{DNNL_ARG_SRC, kernel.input.there(input, 2)},
                                {DNNL_ARG_DIFF_DST, kernel.output.there(output_gradient, 1)},
                                {DNNL_ARG_DIFF_WEIGHTS, to},
                                {DNNL_ARG_SCRATCHPAD, scratchpad_of(kernel.scratchpad)}});
      weights.back(to, weight_gradient);
      stream().wait();
    });
  }

 private:
  struct Forward {
    dnnl::convolution_forward primitive;
    Reorder weights, input, output;
    memory::desc scratchpad;
  };
  struct BackwardInput {
    dnnl::convolution_backward_data primitive;
    Reorder weights, input, output;
    memory::desc scratchpad;
  };
  struct BackwardWeights {
    dnnl::convolution_backward_weights primitive;
    Reorder replace, add, input, output;
    memory::desc scratchpad;
  };

  // The first layouts for which oneDNN has more than its reference; `describe` makes the
  // description of a primitive, which is empty where there is none.
  template <typename Describe>
  auto best(Describe describe) const {
    for (const Layouts& layouts : choices_) {
      auto description = describe(layouts);
      if (description && !std::string(description.impl_info_str()).starts_with("ref"))
        return description;
    }
    return describe(given_);
  }

  dnnl::convolution_forward::primitive_desc describe_forward(const Layouts& layouts,
                                                             const memory::desc& bias = {}) const {
    return {engine(), kTraining, kAlgorithm, layouts.input, any_weights_,     bias, layouts.output,
            strides_, dilation_, padding_,   padding_,      own_scratchpad(), true};
  }

  const Forward& forward_kernel(bool with_bias) {
    auto& place = forward_[with_bias];
    if (place) return *place;
    const auto found = best([&](const Layouts& layouts) {
      return describe_forward(layouts, with_bias ? bias_ : memory::desc());
    });
    return place.emplace(
        Forward{dnnl::convolution_forward(found), Reorder(plain_weights_, found.weights_desc()),
                Reorder(given_.input, found.src_desc()), Reorder(found.dst_desc(), given_.output),
                found.scratchpad_desc()});
  }

  const BackwardInput& input_kernel() {
    if (backward_input_) return *backward_input_;
    using Description = dnnl::convolution_backward_data::primitive_desc;
    const auto found = best([&](const Layouts& layouts) {
      const auto forward = describe_forward(layouts);
      if (!forward) return Description();
      return Description(engine(), kAlgorithm, layouts.input, any_weights_, layouts.output,
                         strides_, dilation_, padding_, padding_, forward, own_scratchpad(), true);
    });
    return backward_input_.emplace(BackwardInput{
        dnnl::convolution_backward_data(found), Reorder(plain_weights_, found.weights_desc()),
        Reorder(found.diff_src_desc(), given_.input), Reorder(given_.output, found.diff_dst_desc()),
        found.scratchpad_desc()});
  }

  const BackwardWeights& weight_kernel() {
    if (backward_weights_) return *backward_weights_;
    using Description = dnnl::convolution_backward_weights::primitive_desc;
    const auto found = best([&](const Layouts& layouts) {
      const auto forward = describe_forward(layouts);
      if (!forward) return Description();
      return Description(engine(), kAlgorithm, layouts.input, any_weights_, layouts.output,
                         strides_, dilation_, padding_, padding_, forward, own_scratchpad(), true);
    });
    const memory::desc& made = found.diff_weights_desc();
    return backward_weights_.emplace(BackwardWeights{
        dnnl::convolution_backward_weights(found), Reorder(made, plain_weights_),
        Reorder(made, plain_weights_, Write::add), Reorder(given_.input, found.src_desc()),
        Reorder(given_.output, found.diff_dst_desc()), found.scratchpad_desc()});
  }

  const Layouts given_;
  const std::array<Layouts, 3> choices_;
  const memory::desc plain_weights_, any_weights_, bias_;
  const memory::dims strides_, dilation_, padding_;
  std::optional<Forward> forward_[2];  // without and with bias
  std::optional<BackwardInput> backward_input_;
  std::optional<BackwardWeights> backward_weights_;
};

}  // namespace

std::unique_ptr<ConvolutionKernels> make_convolution(const ConvolutionShape& shape) {
  return std::make_unique<Kernels>(shape);
}

}  // namespace renkei::compute::onednn
