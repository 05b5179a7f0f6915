#include "compute/dense.h"
#include "compute/dropout.h"
#include "compute/gelu.h"
#include "compute/relu.h"
#include "run/kernels/products.h"
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

// x Wᵀ + b, then a ReLU where asked; `bias` may be undefined.
Tensor product(const ExecutionContext* context, const Tensor& input, const Tensor& weight,
               const Tensor& bias, bool relu) {
  if (const auto shape = bias.defined() ? dense_shape(context, input, weight) : std::nullopt) {
    Tensor output = torch::empty({shape->rows, shape->outputs});
    compute::dense_forward(*shape, data(input), data(weight), data(bias), relu, place(output));
    return output;
  }
  Tensor output = multiply(context, input, weight.t());
  if (bias.defined()) output.add_(bias);
  if (relu) compute::relu_in_place(output.numel(), place(output));
  return output;
}

void product_into(const ExecutionContext* context, const Tensor& a, const Tensor& b,
                  compute::Write write, Tensor to) {
  // Not a product that begins its sums with what is there: then micro-batches of one rank would
  // give other bits than those of several.
  if (write == compute::Write::add)
    to.add_(multiply(context, a, b));
  else
    multiply_into(context, a, b, to);
}

void weight_gradient_into(const ExecutionContext* context, const Tensor& gradient,
                          const Tensor& input, compute::Write write, Tensor to) {
  if (const auto shape = dense_shape(context, input, to))
    compute::dense_backward_weights(*shape, data(input), data(gradient), write, place(to));
  else
    product_into(context, gradient.t(), input, write, to);
}

Tensor give_weight_gradient(ExecutionContext* context, const Tensor& weight, const Tensor& gradient,
                            const Tensor& input) {
  return give_gradient_later(context, weight, [=](float* to, compute::Write write) {
    weight_gradient_into(context, gradient, input, write,
                         torch::from_blob(to, {gradient.size(1), input.size(1)}));
  });
}

Tensor give_bias_gradient(ExecutionContext* context, const Tensor& bias, const Tensor& gradient) {
  if (!bias.defined()) return {};
  return give_gradient_later(context, bias, [=](float* to, compute::Write write) {
    Tensor sums = torch::from_blob(to, gradient.size(1));
    if (write == compute::Write::add)
      sums.add_(gradient.sum(0));
    else
      torch::sum_out(sums, gradient, 0);
  });
}

// What forward leaves for backward, beside tensors.
void remember(AutogradContext* saved_for, const Tensor& given, int64_t context) {
  saved_for->saved_data["input_gradient"] = given.requires_grad();
  saved_for->saved_data["context"] = context;
}
ExecutionContext* remembered_context(AutogradContext* saved_for) {
  return ExecutionContext::from_argument(saved_for->saved_data["context"].toInt());
}
Tensor input_gradient(AutogradContext* saved_for, const Tensor& gradient, const Tensor& weight) {
  return saved_for->saved_data["input_gradient"].toBool()
             ? multiply(remembered_context(saved_for), gradient, weight)
             : Tensor();
}

struct Linear : torch::autograd::Function<Linear> {
  static Tensor forward(AutogradContext* saved_for, const Tensor& given, const Tensor& weight,
                        const std::optional<Tensor>& maybe_bias, bool relu, int64_t context) {
    const Tensor input = given.contiguous(), bias = maybe_bias.value_or(Tensor());
    Tensor output = product(ExecutionContext::from_argument(context), input, weight, bias, relu);
    saved_for->save_for_backward({input, weight, bias, relu ? output : Tensor()});
    remember(saved_for, given, context);
    return output;
  }

  static variable_list backward(AutogradContext* saved_for, variable_list gradients) {
    const auto saved = saved_for->get_saved_variables();
    const Tensor &input = saved[0], &weight = saved[1], &bias = saved[2], &output = saved[3];
    auto* context = remembered_context(saved_for);
    Tensor gradient = gradients[0].contiguous();
    if (output.defined()) {
      Tensor before = torch::empty_like(gradient);
      compute::relu_backward(gradient.numel(), data(output), data(gradient), place(before));
      gradient = before;
    }
    Tensor of_bias = give_bias_gradient(context, bias, gradient);
    Tensor of_weight = give_weight_gradient(context, weight, gradient, input);
    return {input_gradient(saved_for, gradient, weight), of_weight, of_bias, {}, {}};
  }
};

// With weights that lie by input.
struct InputMajorLinear : torch::autograd::Function<InputMajorLinear> {
  static Tensor forward(AutogradContext* saved_for, const Tensor& given, const Tensor& weight,
                        const Tensor& bias, int64_t context) {
    const Tensor input = given.contiguous();
    saved_for->save_for_backward({input, weight, bias});
    remember(saved_for, given, context);
    return multiply(ExecutionContext::from_argument(context), input, weight).add_(bias);
  }

  static variable_list backward(AutogradContext* saved_for, variable_list gradients) {
    const auto saved = saved_for->get_saved_variables();
    const Tensor &input = saved[0], &weight = saved[1], &bias = saved[2];
    auto* context = remembered_context(saved_for);
    const Tensor gradient = gradients[0].contiguous();
    Tensor of_bias = give_bias_gradient(context, bias, gradient);
    Tensor of_weight = give_gradient_later(context, weight, [=](float* to, compute::Write write) {
      const Tensor there = torch::from_blob(to, weight.sizes());
      product_into(context, input.t(), gradient, write, there);
    });
    return {input_gradient(saved_for, gradient, weight.t()), of_weight, of_bias, {}};
  }
};

struct LinearGelu : torch::autograd::Function<LinearGelu> {
  static Tensor forward(AutogradContext* saved_for, const Tensor& given, const Tensor& weight,
                        const Tensor& bias, bool tanh, int64_t context) {
    const Tensor input = given.contiguous();
    const Tensor before = multiply(ExecutionContext::from_argument(context), input, weight.t());
    Tensor output = torch::empty_like(before);
    compute::gelu_forward(rows_of(before), tanh ? compute::Gelu::tanh : compute::Gelu::erf,
                          data(before), data(bias), place(output));
    saved_for->save_for_backward({input, weight, bias, before});
    saved_for->saved_data["tanh"] = tanh;
    remember(saved_for, given, context);
    return output;
  }

  static variable_list backward(AutogradContext* saved_for, variable_list gradients) {
    const auto saved = saved_for->get_saved_variables();
    const Tensor &input = saved[0], &weight = saved[1], &bias = saved[2], &before = saved[3];
    auto* context = remembered_context(saved_for);
    const auto kind =
        saved_for->saved_data["tanh"].toBool() ? compute::Gelu::tanh : compute::Gelu::erf;
    const Tensor given = gradients[0].contiguous();
    Tensor gradient = torch::empty_like(given);
    Tensor of_bias = give_gradient(context, bias, [&](float* to, compute::Write write) {
      compute::gelu_backward(rows_of(before), kind, data(before), data(bias), data(given),
                             place(gradient), write, to);
    });
    Tensor of_weight = give_weight_gradient(context, weight, gradient, input);
    return {input_gradient(saved_for, gradient, weight), of_weight, of_bias, {}, {}};
  }
};

struct LinearAdd : torch::autograd::Function<LinearAdd> {
  static Tensor forward(AutogradContext* saved_for, const Tensor& given, const Tensor& weight,
                        const Tensor& bias, const Tensor& residual, double share, int64_t context) {
    const Tensor input = given.contiguous(), added = residual.contiguous();
    const auto* execution = ExecutionContext::from_argument(context);
    const compute::Dropout dropout{.key = execution ? execution->operation_seed : 0,
                                   .probability = share};
    Tensor output = multiply(execution, input, weight.t());
    compute::bias_dropout_add(dropout, rows_of(output), data(output), data(bias), data(added),
                              place(output));
    saved_for->save_for_backward({input, weight, bias});
    saved_for->saved_data["key"] = static_cast<int64_t>(dropout.key);
    saved_for->saved_data["share"] = share;
    remember(saved_for, given, context);
    return output;
  }

  static variable_list backward(AutogradContext* saved_for, variable_list gradients) {
    const auto saved = saved_for->get_saved_variables();
    const Tensor &input = saved[0], &weight = saved[1], &bias = saved[2];
    auto* context = remembered_context(saved_for);
    const compute::Dropout dropout{
        .key = static_cast<uint64_t>(saved_for->saved_data["key"].toInt()),
        .probability = saved_for->saved_data["share"].toDouble()};
    const Tensor given = gradients[0].contiguous();
    Tensor gradient = dropout.probability > 0 ? torch::empty_like(given) : given;
    Tensor of_bias;
    if (dropout.probability > 0)
      of_bias = give_gradient(context, bias, [&](float* to, compute::Write write) {
        compute::bias_dropout_add_backward(dropout, rows_of(given), data(given), place(gradient),
                                           write, to);
      });
    else
      of_bias = give_bias_gradient(context, bias, gradient);
    Tensor of_weight = give_weight_gradient(context, weight, gradient, input);
    return {input_gradient(saved_for, gradient, weight), of_weight, of_bias, given, {}, {}};
  }
};

Tensor linear(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
              bool relu, int64_t context) {
  if (input.is_meta()) return blank_result(input, {input.size(0), weight.size(0)});
  return Linear::apply(input, weight, bias, relu, context);
}

Tensor linear_input_major(const Tensor& input, const Tensor& weight, const Tensor& bias,
                          int64_t context) {
  if (input.is_meta()) return blank_result(input, {input.size(0), weight.size(1)});
  return InputMajorLinear::apply(input, weight, bias, context);
}

Tensor linear_gelu(const Tensor& input, const Tensor& weight, const Tensor& bias,
                   std::string_view approximate, int64_t context) {
  if (input.is_meta()) return blank_result(input, {input.size(0), weight.size(0)});
  return LinearGelu::apply(input, weight, bias, approximate == "tanh", context);
}

Tensor linear_add(const Tensor& input, const Tensor& weight, const Tensor& bias,
                  const Tensor& residual, double dropout_p, int64_t context) {
  if (input.is_meta()) return blank_result(input, {input.size(0), weight.size(0)});
  return LinearAdd::apply(input, weight, bias, residual, dropout_p, context);
}

}  // namespace

// Of matrices: x Wᵀ + b, then a ReLU or GELU, or a dropout and the sum with a residual.
void register_linear(torch::Library& library) {
  library.def(
      "linear(Tensor input, Tensor weight, Tensor? bias, bool relu, int context=0) -> Tensor",
      &linear);
  library.def(
      "linear.input_major(Tensor input, Tensor weight, Tensor bias, int context=0) -> Tensor",
      &linear_input_major);
  library.def(
      "linear.gelu(Tensor input, Tensor weight, Tensor bias, str approximate, int context=0) -> "
      "Tensor",
      &linear_gelu);
  library.def(
      "linear.add(Tensor input, Tensor weight, Tensor bias, Tensor residual, float dropout_p, "
      "int context=0) -> Tensor",
      &linear_add);
}

}  // namespace renkei::run::kernels
