#include "compute/convolution.h"

#include "compute/relu.h"
#include "compute/winograd.h"
#include "run/kernels/images.h"
#include "run/kernels/registry.h"

namespace renkei::run::kernels {
namespace {

// Beside the tensors: strides, padding, dilation (height, width), groups, the block of the result.
using Geometry = std::vector<int64_t>;

compute::ConvolutionShape convolution_shape(const Tensor& input, const Tensor& weight,
                                            const Geometry& geometry) {
  return {.batch = input.size(0),
          .in_channels = weight.size(1) * geometry[6],
          .height = input.size(2),  // in both layouts
          .width = input.size(3),
          .out_channels = weight.size(0),
          .kernel_height = weight.size(2),
          .kernel_width = weight.size(3),
          .stride_height = geometry[0],
          .stride_width = geometry[1],
          .padding_height = geometry[2],
          .padding_width = geometry[3],
          .dilation_height = geometry[4],
          .dilation_width = geometry[5],
          .groups = geometry[6],
          .in_block = input.dim() == 5 ? input.size(4) : 1,
          .out_block = geometry[7]};
}

compute::WinogradChoice winograd_for(const ExecutionContext* context,
                                     const compute::ConvolutionShape& shape) {
  return !context || context->winograd ? compute::winograd_choice(shape)
                                       : compute::WinogradChoice{};
}

struct Convolution : torch::autograd::Function<Convolution> {
  static Tensor forward(AutogradContext* saved_for, const Tensor& given, const Tensor& weight,
                        const std::optional<Tensor>& maybe_bias, const Geometry& geometry,
                        bool relu, int64_t context_argument) {
    const auto* context = ExecutionContext::from_argument(context_argument);
    const Tensor input = given.contiguous(), bias = maybe_bias.value_or(Tensor());
    const auto shape = convolution_shape(input, weight, geometry);
    Tensor output = empty_image(shape.output());
    if (winograd_for(context, shape).forward)
      compute::winograd_forward(shape, data(input), data(weight), data(bias), relu, place(output));
    else
      compute::convolution_for(shape).forward(data(input), data(weight), data(bias), relu,
                                              place(output));
    saved_for->save_for_backward({input, weight, bias, relu ? output : Tensor()});
    saved_for->saved_data["geometry"] = geometry;
    saved_for->saved_data["input_gradient"] = given.requires_grad();
    saved_for->saved_data["context"] = context_argument;
    return output;
  }

  static variable_list backward(AutogradContext* saved_for, variable_list gradients) {
    const auto saved = saved_for->get_saved_variables();
    auto* context = ExecutionContext::from_argument(saved_for->saved_data["context"].toInt());
    const Tensor &input = saved[0], &weight = saved[1], &bias = saved[2], &output = saved[3];
    const auto geometry = saved_for->saved_data["geometry"].toIntVector();
    const auto shape = convolution_shape(input, weight, geometry);
    const auto winograd = winograd_for(context, shape);
    Tensor gradient = gradients[0].contiguous();

    Tensor bias_gradient;
    if (output.defined()) {  // back through the ReLU, and the bias on the way
      Tensor before = torch::empty_like(gradient);
      const auto through = [&](float* to, compute::Write write) {
        compute::bias_relu_backward(shape.output(), data(output), data(gradient), place(before),
                                    write, to);
      };
      if (bias.defined())
        bias_gradient = give_gradient(context, bias, through);
      else
        through(nullptr, compute::Write::replace);
      gradient = before;
    } else if (bias.defined()) {
      bias_gradient = give_gradient(context, bias, [&](float* to, compute::Write write) {
        compute::bias_backward(shape.output(), data(gradient), write, to);
      });
    }

    Tensor weight_gradient =
        give_gradient_later(context, weight, [=](float* to, compute::Write write) {
          if (winograd.backward_weights)
            compute::winograd_backward_weights(shape, data(input), data(gradient), write, to);
          else
            compute::convolution_for(shape).backward_weights(data(input), data(gradient), write,
                                                             to);
        });

    Tensor input_gradient;
    if (saved_for->saved_data["input_gradient"].toBool()) {
      input_gradient = torch::empty_like(input);
      if (winograd.backward_input)
        compute::winograd_backward_input(shape, data(gradient), data(weight),
                                         place(input_gradient));
      else
        compute::convolution_for(shape).backward_input(data(gradient), data(weight),
                                                       place(input_gradient));
    }
    return {input_gradient, weight_gradient, bias_gradient, {}, {}, {}};
  }
};

Tensor convolve(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                const Geometry& geometry, bool relu, int64_t context) {
  if (input.is_meta())
    return blank_result(input, blocked_sizes(convolution_shape(input, weight, geometry).output()));
  return Convolution::apply(input, weight, bias, geometry, relu, context);
}

Tensor conv(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
            int64_t stride, int64_t padding_height, int64_t padding_width, bool relu,
            int64_t context) {
  return convolve(input, weight, bias,
                  {stride, stride, padding_height, padding_width, 1, 1, 1, compute::kBlock}, relu,
                  context);
}

Tensor conv_general(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                    at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation,
                    int64_t groups, int64_t block, bool relu, int64_t context) {
  return convolve(
      input, weight, bias,
      {stride[0], stride[1], padding[0], padding[1], dilation[0], dilation[1], groups, block}, relu,
      context);
}

}  // namespace

void register_convolution(torch::Library& library) {
  library.def(
      "conv(Tensor input, Tensor weight, Tensor? bias, int stride, int padding_height, "
      "int padding_width, bool relu, int context=0) -> Tensor",
      &conv);
  library.def(
      "conv.general(Tensor input, Tensor weight, Tensor? bias, int[2] stride, int[2] padding, "
      "int[2] dilation, int groups, int block, bool relu, int context=0) -> Tensor",
      &conv_general);
}

}  // namespace renkei::run::kernels
