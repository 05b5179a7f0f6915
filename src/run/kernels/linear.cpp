#include "compute/dense.h"
#include "compute/relu.h"
#include "run/kernels/common.h"
#include "run/kernels/registry.h"

namespace renkei::run::kernels {
namespace {

// Nothing: a BLAS does it.
std::optional<compute::DenseShape> dense_shape(const ExecutionContext* context, const Tensor& input,
                                               const Tensor& weight) {
  const compute::DenseShape shape{
      .rows = input.size(0), .inputs = input.size(1), .outputs = weight.size(0)};
  if ((context && !context->dense) || !shape.suits()) return {};
  return shape;
}

Tensor linear_forward(const ExecutionContext* context, const Tensor& input, const Tensor& weight,
                      const Tensor& bias, bool relu) {
  if (const auto shape = dense_shape(context, input, weight)) {
    Tensor output = torch::empty({shape->rows, shape->outputs});
    compute::dense_forward(*shape, data(input), data(weight), data(bias), relu, place(output));
    return output;
  }
  Tensor output = torch::addmm(bias, input, weight.t());
  if (relu) output.relu_();
  return output;
}

void linear_weight_gradient(const ExecutionContext* context, const Tensor& gradient,
                            const Tensor& input, compute::Write write, Tensor gradient_of_weight) {
  if (const auto shape = dense_shape(context, input, gradient_of_weight))
    compute::dense_backward_weights(*shape, data(input), data(gradient), write,
                                    place(gradient_of_weight));
  else if (write == compute::Write::add)
    // Not addmm_: that may begin its sums with what is there, and then micro-batches of one rank
    // would give other bits than those of several.
    gradient_of_weight.add_(gradient.t().mm(input));
  else
    torch::mm_out(gradient_of_weight, gradient.t(), input);
}

struct Linear : torch::autograd::Function<Linear> {
  static Tensor forward(AutogradContext* saved_for, const Tensor& given, const Tensor& weight,
                        const Tensor& bias, bool relu, int64_t context_argument) {
    const auto* context = ExecutionContext::from_argument(context_argument);
    const Tensor input = given.contiguous();
    Tensor output = linear_forward(context, input, weight, bias, relu);
    saved_for->save_for_backward({input, weight, bias, relu ? output : Tensor()});
    saved_for->saved_data["input_gradient"] = given.requires_grad();
    saved_for->saved_data["context"] = context_argument;
    return output;
  }

  static variable_list backward(AutogradContext* saved_for, variable_list gradients) {
    const auto saved = saved_for->get_saved_variables();
    auto* context = ExecutionContext::from_argument(saved_for->saved_data["context"].toInt());
    const Tensor &input = saved[0], &weight = saved[1], &bias = saved[2], &output = saved[3];
    Tensor gradient = gradients[0].contiguous();
    if (output.defined()) {
      Tensor before = torch::empty_like(gradient);
      compute::relu_backward(gradient.numel(), data(output), data(gradient), place(before));
      gradient = before;
    }
    Tensor bias_gradient = give_gradient_later(context, bias, [=](float* to, compute::Write write) {
      Tensor sums = torch::from_blob(to, gradient.size(1));
      if (write == compute::Write::add)
        sums.add_(gradient.sum(0));
      else
        torch::sum_out(sums, gradient, 0);
    });
    Tensor weight_gradient =
        give_gradient_later(context, weight, [=](float* to, compute::Write write) {
          linear_weight_gradient(context, gradient, input, write,
                                 torch::from_blob(to, {gradient.size(1), input.size(1)}));
        });
    Tensor input_gradient;
    if (saved_for->saved_data["input_gradient"].toBool()) input_gradient = gradient.mm(weight);
    return {input_gradient, weight_gradient, bias_gradient, {}, {}};
  }
};

Tensor linear_kernel(const Tensor& input, const Tensor& weight, const Tensor& bias, bool relu,
                     int64_t context) {
  if (input.is_meta()) return blank_result(input, {input.size(0), weight.size(0)});
  return Linear::apply(input, weight, bias, relu, context);
}

}  // namespace

// x Wᵀ + b, then a ReLU where asked. For plain matrices.
void register_linear(torch::Library& library) {
  library.def(
      "linear(Tensor input, Tensor weight, Tensor bias, bool relu, int context=0) -> Tensor",
      &linear_kernel);
}

}  // namespace renkei::run::kernels
