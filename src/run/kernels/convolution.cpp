#include "compute/convolution.h"

#include "compute/relu.h"
#include "compute/winograd.h"
#include "run/kernels/images.h"
#include "run/kernels/registry.h"

namespace renkei::run::kernels {
namespace {

compute::ConvolutionShape convolution_shape(const Tensor& input, const Tensor& weight,
                                            int64_t stride, int64_t padding_height,
                                            int64_t padding_width) {
  return {.batch = input.size(0),
          .in_channels = weight.size(1),
          .height = input.size(2),  // in both layouts
          .width = input.size(3),
          .out_channels = weight.size(0),
          .kernel_height = weight.size(2),
          .kernel_width = weight.size(3),
          .stride = stride,
          .padding_height = padding_height,
          .padding_width = padding_width};
}

compute::WinogradChoice winograd_for(const ExecutionContext* context,
                                     const compute::ConvolutionShape& shape) {
  return !context || context->winograd ? compute::winograd_choice(shape)
                                       : compute::WinogradChoice{};
}

struct Convolution : torch::autograd::Function<Convolution> {
  static Tensor forward(AutogradContext* saved_for, const Tensor& given, const Tensor& weight,
                        const std::optional<Tensor>& maybe_bias, int64_t stride,
                        int64_t padding_height, int64_t padding_width, bool relu,
                        int64_t context_argument) {
    const auto* context = ExecutionContext::from_argument(context_argument);
    const Tensor input = given.contiguous(), bias = maybe_bias.value_or(Tensor());
    const auto shape = convolution_shape(input, weight, stride, padding_height, padding_width);
    Tensor output = empty_image(shape.output());
    if (winograd_for(context, shape).forward)
      compute::winograd_forward(shape, data(input), data(weight), data(bias), relu, place(output));
    else
      compute::convolution_for(shape).forward(data(input), data(weight), data(bias), relu,
                                              place(output));
    saved_for->save_for_backward({input, weight, bias, relu ? output : Tensor()});
    saved_for->saved_data["geometry"] = std::vector<int64_t>{stride, padding_height, padding_width};
    saved_for->saved_data["input_gradient"] = given.requires_grad();
    saved_for->saved_data["context"] = context_argument;
    return output;
  }

  static variable_list backward(AutogradContext* saved_for, variable_list gradients) {
    const auto saved = saved_for->get_saved_variables();
    auto* context = ExecutionContext::from_argument(saved_for->saved_data["context"].toInt());
    const Tensor &input = saved[0], &weight = saved[1], &bias = saved[2], &output = saved[3];
    const auto geometry = saved_for->saved_data["geometry"].toIntVector();
    const auto shape = convolution_shape(input, weight, geometry[0], geometry[1], geometry[2]);
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
    return {input_gradient, weight_gradient, bias_gradient, {}, {}, {}, {}, {}};
  }
};

Tensor conv_kernel(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                   int64_t stride, int64_t padding_height, int64_t padding_width, bool relu,
                   int64_t context) {
  if (input.is_meta())
    return blank_result(
        input,
        blocked_sizes(
            convolution_shape(input, weight, stride, padding_height, padding_width).output()));
  return Convolution::apply(input, weight, bias, stride, padding_height, padding_width, relu,
                            context);
}

}  // namespace

void register_convolution(torch::Library& library) {
  library.def(
      "conv(Tensor input, Tensor weight, Tensor? bias, int stride, int padding_height, "
      "int padding_width, bool relu, int context=0) -> Tensor",
      &conv_kernel);
}

}  // namespace renkei::run::kernels
