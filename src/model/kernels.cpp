#include "model/kernels.h"

#include <torch/library.h>

#include "compute/batch_norm.h"
#include "compute/convolution.h"
#include "compute/dense.h"
#include "compute/pooling.h"
#include "compute/relu.h"
#include "compute/winograd.h"
#include "model/batch_norm_policy.h"
#include "model/compute_options.h"
#include "model/gradient_sink.h"

namespace renkei::model::kernels {

using compute::kBlock;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

namespace {

compute::ImageShape shape_of(const Tensor& image) {
  return {image.size(0), image.size(1) * kBlock, image.size(2), image.size(3)};
}

std::vector<int64_t> blocked_sizes(const compute::ImageShape& shape) {
  return {shape.batch, shape.channels / kBlock, shape.height, shape.width, kBlock};
}

Tensor empty_image(const compute::ImageShape& shape) {
  return torch::empty(blocked_sizes(shape));
}

const float* data(const Tensor& tensor) {
  return tensor.defined() ? tensor.data_ptr<float>() : nullptr;
}

// --- convolution ---

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

compute::WinogradChoice winograd_for(const compute::ConvolutionShape& shape) {
  return compute_options().winograd ? compute::winograd_choice(shape) : compute::WinogradChoice{};
}

struct Convolution : torch::autograd::Function<Convolution> {
  static Tensor forward(AutogradContext* context, const Tensor& given, const Tensor& weight,
                        const c10::optional<Tensor>& maybe_bias, int64_t stride,
                        int64_t padding_height, int64_t padding_width, bool relu) {
    const Tensor input = given.contiguous(), bias = maybe_bias.value_or(Tensor());
    const auto shape = convolution_shape(input, weight, stride, padding_height, padding_width);
    Tensor output = empty_image(shape.output());
    if (winograd_for(shape).forward)
      compute::winograd_forward(shape, data(input), data(weight), data(bias), relu,
                                output.data_ptr<float>());
    else
      compute::convolution_for(shape).forward(data(input), data(weight), data(bias), relu,
                                              output.data_ptr<float>());
    context->save_for_backward({input, weight, bias, relu ? output : Tensor()});
    context->saved_data["geometry"] = std::vector<int64_t>{stride, padding_height, padding_width};
    context->saved_data["input_gradient"] = given.requires_grad();
    return output;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &input = saved[0], &weight = saved[1], &bias = saved[2], &output = saved[3];
    const auto geometry = context->saved_data["geometry"].toIntVector();
    const auto shape = convolution_shape(input, weight, geometry[0], geometry[1], geometry[2]);
    const auto winograd = winograd_for(shape);
    Tensor gradient = gradients[0].contiguous();

    Tensor bias_gradient;
    if (output.defined()) {  // back through the ReLU, and the bias on the way
      Tensor before = torch::empty_like(gradient);
      const auto through = [&](float* to, compute::Write write) {
        compute::bias_relu_backward(shape.output(), data(output), data(gradient),
                                    before.data_ptr<float>(), write, to);
      };
      if (bias.defined())
        bias_gradient = give_gradient(bias, through);
      else
        through(nullptr, compute::Write::replace);
      gradient = before;
    } else if (bias.defined()) {
      bias_gradient = give_gradient(bias, [&](float* to, compute::Write write) {
        compute::bias_backward(shape.output(), data(gradient), write, to);
      });
    }

    Tensor weight_gradient = give_gradient_later(weight, [=](float* to, compute::Write write) {
      if (winograd.backward_weights)
        compute::winograd_backward_weights(shape, data(input), data(gradient), write, to);
      else
        compute::convolution_for(shape).backward_weights(data(input), data(gradient), write, to);
    });

    Tensor input_gradient;
    if (context->saved_data["input_gradient"].toBool()) {
      input_gradient = torch::empty_like(input);
      if (winograd.backward_input)
        compute::winograd_backward_input(shape, data(gradient), data(weight),
                                         input_gradient.data_ptr<float>());
      else
        compute::convolution_for(shape).backward_input(data(gradient), data(weight),
                                                       input_gradient.data_ptr<float>());
    }
    return {input_gradient, weight_gradient, bias_gradient, {}, {}, {}, {}};
  }
};

// --- batch normalisation ---

struct RunningStatistics {
  c10::optional<Tensor> mean, variance, batches;  // none of them, or all
  c10::optional<double> momentum;                 // none: the mean over all batches
};

void update_running_statistics(const RunningStatistics& running,
                               const compute::ChannelStatistics& statistics, double values) {
  if (!running.mean) return;
  running.batches->add_(1);
  double momentum = running.momentum.value_or(1.0 / running.batches->item<double>());
  if (batch_norm_policy().mode == BatchNormMode::last) momentum = 1;
  const auto keep = static_cast<float>(1 - momentum), take = static_cast<float>(momentum);
  // The running variance is the unbiased one.
  const auto unbiased = static_cast<float>(values > 1 ? values / (values - 1) : 1);
  float* mean = running.mean->data_ptr<float>();
  float* variance = running.variance->data_ptr<float>();
  for (size_t c = 0; c < statistics.mean.size(); ++c) {
    mean[c] = keep * mean[c] + take * statistics.mean[c];
    variance[c] = keep * variance[c] + take * (statistics.variance[c] * unbiased);
  }
}

// The statistics of a forward pass, for its backward pass.
struct SavedStatistics : torch::CustomClassHolder {
  compute::ChannelStatistics statistics;
  double values = 0;  // per channel; over all ranks if they are synchronised
};

bool synchronised() {
  return batch_norm_policy().mode == BatchNormMode::synchronised;
}

// Statistics of all ranks from those of each; `values` is per channel, of this rank, then of all.
void combine_over_ranks(compute::ChannelStatistics& statistics, double& values) {
  const size_t channels = statistics.mean.size();
  std::vector<double> sums{values};
  for (const float mean : statistics.mean) sums.push_back(values * static_cast<double>(mean));
  for (size_t c = 0; c < channels; ++c) {
    const auto mean = static_cast<double>(statistics.mean[c]);
    sums.push_back(values * (static_cast<double>(statistics.variance[c]) + mean * mean));
  }
  batch_norm_policy().sum_over_ranks(sums);
  values = sums[0];
  for (size_t c = 0; c < channels; ++c) {
    const double mean = sums[1 + c] / values;
    statistics.mean[c] = static_cast<float>(mean);
    statistics.variance[c] =
        static_cast<float>(std::max(0.0, sums[1 + channels + c] / values - mean * mean));
  }
}

compute::BatchNormSums sums_over_ranks(const compute::BatchNormSums& mine) {
  std::vector<double> sums(mine.g.begin(), mine.g.end());
  sums.insert(sums.end(), mine.g_xhat.begin(), mine.g_xhat.end());
  batch_norm_policy().sum_over_ranks(sums);
  const auto middle = sums.begin() + static_cast<ptrdiff_t>(mine.g.size());
  return {{sums.begin(), middle}, {middle, sums.end()}};
}

struct BatchNorm : torch::autograd::Function<BatchNorm> {
  static Tensor forward(AutogradContext* context, const Tensor& given, const Tensor& gamma,
                        const Tensor& beta, const c10::optional<Tensor>& residual,
                        const RunningStatistics* running, double eps, bool relu) {
    const Tensor input = given.contiguous();
    const Tensor added = residual ? residual->contiguous() : Tensor();
    const auto shape = shape_of(input);
    const auto epsilon = static_cast<float>(eps);
    Tensor output = torch::empty_like(input);
    auto saved = c10::make_intrusive<SavedStatistics>();
    saved->values = static_cast<double>(shape.batch * shape.pixels());
    const compute::BatchNormTail tail{.residual = data(added), .relu = relu};
    if (synchronised()) {
      saved->statistics = compute::batch_norm_statistics(shape, data(input));
      combine_over_ranks(saved->statistics, saved->values);
      compute::batch_norm_apply(shape, data(input), saved->statistics, data(gamma), data(beta),
                                epsilon, tail, output.data_ptr<float>());
    } else {
      saved->statistics = compute::batch_norm_forward(shape, data(input), data(gamma), data(beta),
                                                      epsilon, tail, output.data_ptr<float>());
    }
    update_running_statistics(*running, saved->statistics, saved->values);
    const bool needs_output = relu && added.defined();
    context->save_for_backward({input, gamma, beta, needs_output ? output : Tensor()});
    context->saved_data["statistics"] = torch::IValue::make_capsule(saved);
    context->saved_data["epsilon"] = eps;
    context->saved_data["relu"] = relu;
    context->saved_data["residual"] = added.defined();
    return output;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &input = saved[0], &gamma = saved[1], &beta = saved[2], &output = saved[3];
    const auto capsule = context->saved_data["statistics"].toCapsule();
    const auto& forward = static_cast<SavedStatistics&>(*capsule);
    const bool relu = context->saved_data["relu"].toBool();
    const bool has_residual = context->saved_data["residual"].toBool();
    const Tensor gradient = gradients[0].contiguous();
    Tensor input_gradient = torch::empty_like(input);
    // Without a ReLU the residual's gradient is that of the output, and nothing is written.
    Tensor residual_gradient;
    if (has_residual) residual_gradient = relu ? torch::empty_like(input) : gradient;
    const compute::BatchNormBackward work{
        .shape = shape_of(input),
        .x = data(input),
        .y = data(output),
        .statistics = forward.statistics,
        .gamma = data(gamma),
        .beta = data(beta),
        .epsilon = static_cast<float>(context->saved_data["epsilon"].toDouble()),
        .relu = relu,
        .y_gradient = data(gradient),
        .x_gradient = input_gradient.data_ptr<float>(),
        .residual_gradient = has_residual && relu ? residual_gradient.data_ptr<float>() : nullptr};
    compute::BatchNormSums sums;  // of this rank: gradients of parameters are added up later
    if (synchronised()) {
      sums = compute::batch_norm_backward_sums(work);
      compute::batch_norm_backward_apply(work, sums_over_ranks(sums), forward.values);
    } else {
      sums = compute::batch_norm_backward(work);
    }
    const auto give = [](const Tensor& parameter, const std::vector<float>& values) {
      return give_gradient(parameter, [&](float* to, compute::Write write) {
        for (size_t c = 0; c < values.size(); ++c)
          to[c] = (write == compute::Write::add ? to[c] : 0) + values[c];
      });
    };
    return {input_gradient,
            give(gamma, sums.g_xhat),
            give(beta, sums.g),
            residual_gradient,
            {},
            {},
            {}};
  }
};

// --- pooling ---

compute::PoolingShape pooling_shape(const Tensor& input, int64_t kernel, int64_t stride,
                                    int64_t padding, bool max) {
  const auto shape = shape_of(input);
  return {.batch = shape.batch,
          .channels = shape.channels,
          .height = shape.height,
          .width = shape.width,
          .kernel = kernel,
          .stride = stride,
          .padding = padding,
          .max = max};
}

struct Pooling : torch::autograd::Function<Pooling> {
  static Tensor forward(AutogradContext* context, const Tensor& given, int64_t kernel,
                        int64_t stride, int64_t padding, bool max) {
    const Tensor input = given.contiguous();
    const auto shape = pooling_shape(input, kernel, stride, padding, max);
    Tensor output = empty_image(shape.output());
    Tensor workspace = torch::empty({static_cast<int64_t>(compute::pooling_workspace_bytes(shape))},
                                    torch::kUInt8);
    compute::pooling_forward(shape, data(input), output.data_ptr<float>(),
                             static_cast<std::byte*>(workspace.data_ptr()));
    context->save_for_backward({workspace});
    context->saved_data["pool"] = std::vector<int64_t>{kernel, stride, padding, max};
    context->saved_data["input"] = input.sizes().vec();
    return output;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const auto pool = context->saved_data["pool"].toIntVector();
    Tensor input_gradient = torch::empty(context->saved_data["input"].toIntVector());
    const auto shape = pooling_shape(input_gradient, pool[0], pool[1], pool[2], pool[3] != 0);
    compute::pooling_backward(shape, data(gradients[0].contiguous()),
                              static_cast<const std::byte*>(saved[0].data_ptr()),
                              input_gradient.data_ptr<float>());
    return {input_gradient, {}, {}, {}, {}};
  }
};

// --- dense layers ---

// Nothing: a BLAS does it.
std::optional<compute::DenseShape> dense_shape(const Tensor& input, const Tensor& weight) {
  const compute::DenseShape shape{
      .rows = input.size(0), .inputs = input.size(1), .outputs = weight.size(0)};
  if (!compute_options().dense || !shape.suits()) return {};
  return shape;
}

Tensor linear_forward(const Tensor& input, const Tensor& weight, const Tensor& bias, bool relu) {
  if (const auto shape = dense_shape(input, weight)) {
    Tensor output = torch::empty({shape->rows, shape->outputs});
    compute::dense_forward(*shape, data(input), data(weight), data(bias), relu,
                           output.data_ptr<float>());
    return output;
  }
  Tensor output = torch::addmm(bias, input, weight.t());
  if (relu) output.relu_();
  return output;
}

void linear_weight_gradient(const Tensor& gradient, const Tensor& input, compute::Write write,
                            Tensor place) {
  if (const auto shape = dense_shape(input, place))
    compute::dense_backward_weights(*shape, data(input), data(gradient), write,
                                    place.data_ptr<float>());
  else if (write == compute::Write::add)
    place.addmm_(gradient.t(), input);
  else
    torch::mm_out(place, gradient.t(), input);
}

struct Linear : torch::autograd::Function<Linear> {
  static Tensor forward(AutogradContext* context, const Tensor& given, const Tensor& weight,
                        const Tensor& bias, bool relu) {
    const Tensor input = given.contiguous();
    Tensor output = linear_forward(input, weight, bias, relu);
    context->save_for_backward({input, weight, bias, relu ? output : Tensor()});
    context->saved_data["input_gradient"] = given.requires_grad();
    return output;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &input = saved[0], &weight = saved[1], &bias = saved[2], &output = saved[3];
    Tensor gradient = gradients[0].contiguous();
    if (output.defined()) {
      Tensor before = torch::empty_like(gradient);
      compute::relu_backward(gradient.numel(), data(output), data(gradient),
                             before.data_ptr<float>());
      gradient = before;
    }
    Tensor bias_gradient = give_gradient_later(bias, [=](float* to, compute::Write write) {
      Tensor place = torch::from_blob(to, gradient.size(1));
      if (write == compute::Write::add)
        place.add_(gradient.sum(0));
      else
        torch::sum_out(place, gradient, 0);
    });
    Tensor weight_gradient = give_gradient_later(weight, [=](float* to, compute::Write write) {
      linear_weight_gradient(gradient, input, write,
                             torch::from_blob(to, {gradient.size(1), input.size(1)}));
    });
    Tensor input_gradient;
    if (context->saved_data["input_gradient"].toBool()) input_gradient = gradient.mm(weight);
    return {input_gradient, weight_gradient, bias_gradient, {}};
  }
};

// --- what is registered ---

// The result for an input without values (blank.h) is one too.
Tensor blank_result(const Tensor& input, at::IntArrayRef shape) {
  return torch::empty(shape, input.options().requires_grad(torch::GradMode::is_enabled()));
}

Tensor conv_kernel(const Tensor& input, const Tensor& weight, const c10::optional<Tensor>& bias,
                   int64_t stride, int64_t padding_height, int64_t padding_width, bool relu) {
  if (input.is_meta())
    return blank_result(
        input,
        blocked_sizes(
            convolution_shape(input, weight, stride, padding_height, padding_width).output()));
  return Convolution::apply(input, weight, bias, stride, padding_height, padding_width, relu);
}

Tensor batch_norm_kernel(const Tensor& input, const Tensor& gamma, const Tensor& beta,
                         const c10::optional<Tensor>& running_mean,
                         const c10::optional<Tensor>& running_variance,
                         const c10::optional<Tensor>& batches,
                         const c10::optional<Tensor>& residual, c10::optional<double> momentum,
                         double epsilon, bool relu) {
  if (input.is_meta()) return blank_result(input, input.sizes());
  const RunningStatistics running{running_mean, running_variance, batches, momentum};
  return BatchNorm::apply(input, gamma, beta, residual, &running, epsilon, relu);
}

Tensor normalise_kernel(const Tensor& input, const Tensor& gamma, const Tensor& beta,
                        const Tensor& mean, const Tensor& variance,
                        const c10::optional<Tensor>& residual, double epsilon, bool relu) {
  if (input.is_meta()) return blank_result(input, input.sizes());
  const Tensor x = input.contiguous();
  const Tensor added = residual ? residual->contiguous() : Tensor();
  const auto values = [](const Tensor& tensor) {
    return std::vector<float>(data(tensor), data(tensor) + tensor.numel());
  };
  Tensor output = torch::empty_like(x);
  compute::batch_norm_apply(shape_of(x), data(x), {values(mean), values(variance)}, data(gamma),
                            data(beta), static_cast<float>(epsilon),
                            {.residual = data(added), .relu = relu}, output.data_ptr<float>());
  return output;
}

Tensor pool_kernel(const Tensor& input, int64_t kernel, int64_t stride, int64_t padding, bool max) {
  if (input.is_meta())
    return blank_result(input,
                        blocked_sizes(pooling_shape(input, kernel, stride, padding, max).output()));
  return Pooling::apply(input, kernel, stride, padding, max);
}

Tensor linear_kernel(const Tensor& input, const Tensor& weight, const Tensor& bias, bool relu) {
  if (input.is_meta()) return blank_result(input, {input.size(0), weight.size(0)});
  return Linear::apply(input, weight, bias, relu);
}

}  // namespace

TORCH_LIBRARY(renkei, library) {
  library.def(
      "conv(Tensor input, Tensor weight, Tensor? bias, int stride, int padding_height, "
      "int padding_width, bool relu) -> Tensor",
      &conv_kernel);
  library.def(
      "batch_norm(Tensor input, Tensor gamma, Tensor beta, Tensor? running_mean, "
      "Tensor? running_variance, Tensor? batches, Tensor? residual, float? momentum, "
      "float epsilon, bool relu) -> Tensor",
      &batch_norm_kernel);
  library.def(
      "normalise(Tensor input, Tensor gamma, Tensor beta, Tensor mean, Tensor variance, "
      "Tensor? residual, float epsilon, bool relu) -> Tensor",
      &normalise_kernel);
  library.def("pool(Tensor input, int kernel, int stride, int padding, bool max) -> Tensor",
              &pool_kernel);
  library.def("linear(Tensor input, Tensor weight, Tensor bias, bool relu) -> Tensor",
              &linear_kernel);
}

namespace {

template <typename Signature>
c10::TypedOperatorHandle<Signature> find(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

}  // namespace

Tensor conv(const Tensor& input, const Tensor& weight, const c10::optional<Tensor>& bias,
            int64_t stride, int64_t padding_height, int64_t padding_width, bool relu) {
  static const auto kernel = find<decltype(conv_kernel)>("renkei::conv");
  return kernel.call(input, weight, bias, stride, padding_height, padding_width, relu);
}

Tensor batch_norm(const Tensor& input, const Tensor& gamma, const Tensor& beta,
                  const c10::optional<Tensor>& running_mean,
                  const c10::optional<Tensor>& running_variance,
                  const c10::optional<Tensor>& batches, const c10::optional<Tensor>& residual,
                  c10::optional<double> momentum, double epsilon, bool relu) {
  static const auto kernel = find<decltype(batch_norm_kernel)>("renkei::batch_norm");
  return kernel.call(input, gamma, beta, running_mean, running_variance, batches, residual,
                     momentum, epsilon, relu);
}

Tensor normalise(const Tensor& input, const Tensor& gamma, const Tensor& beta, const Tensor& mean,
                 const Tensor& variance, const c10::optional<Tensor>& residual, double epsilon,
                 bool relu) {
  static const auto kernel = find<decltype(normalise_kernel)>("renkei::normalise");
  return kernel.call(input, gamma, beta, mean, variance, residual, epsilon, relu);
}

Tensor pool(const Tensor& input, int64_t window, int64_t stride, int64_t padding, bool max) {
  static const auto kernel = find<decltype(pool_kernel)>("renkei::pool");
  return kernel.call(input, window, stride, padding, max);
}

Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias, bool relu) {
  static const auto kernel = find<decltype(linear_kernel)>("renkei::linear");
  return kernel.call(input, weight, bias, relu);
}

}  // namespace renkei::model::kernels
