#include "model/blocked_layers.h"

#include "compute/batch_norm.h"
#include "compute/convolution.h"
#include "compute/pooling.h"
#include "compute/relu.h"
#include "compute/winograd.h"
#include "model/batch_norm_policy.h"
#include "model/compute_options.h"
#include "model/gradient_sink.h"

namespace renkei::model::blocked {

using compute::kBlock;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

namespace {

compute::ImageShape shape_of(const Tensor& image) {
  return {image.size(0), image.size(1) * kBlock, image.size(2), image.size(3)};
}

Tensor empty_image(const compute::ImageShape& shape) {
  return torch::empty({shape.batch, shape.channels / kBlock, shape.height, shape.width, kBlock});
}

const float* data(const Tensor& tensor) {
  return tensor.defined() ? tensor.data_ptr<float>() : nullptr;
}

// Autograd takes no undefined tensors as arguments.
c10::optional<Tensor> optional(const Tensor& tensor) {
  return tensor.defined() ? c10::optional<Tensor>(tensor) : c10::nullopt;
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

    Tensor weight_gradient = give_gradient(weight, [&](float* to, compute::Write write) {
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

void update_running_statistics(torch::nn::BatchNorm2dImpl& bn,
                               const compute::ChannelStatistics& statistics, double values) {
  if (!bn.running_mean.defined()) return;
  bn.num_batches_tracked += 1;
  double momentum = bn.options.momentum().has_value() ? *bn.options.momentum()
                                                      : 1.0 / bn.num_batches_tracked.item<double>();
  if (batch_norm_policy().mode == BatchNormMode::last) momentum = 1;
  const auto keep = static_cast<float>(1 - momentum), take = static_cast<float>(momentum);
  // The running variance is the unbiased one.
  const auto unbiased = static_cast<float>(values > 1 ? values / (values - 1) : 1);
  float* mean = bn.running_mean.data_ptr<float>();
  float* variance = bn.running_var.data_ptr<float>();
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
                        torch::nn::BatchNorm2dImpl* bn, bool relu) {
    const Tensor input = given.contiguous();
    const Tensor added = residual ? residual->contiguous() : Tensor();
    const auto shape = shape_of(input);
    const auto epsilon = static_cast<float>(bn->options.eps());
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
    update_running_statistics(*bn, saved->statistics, saved->values);
    const bool needs_output = relu && added.defined();
    context->save_for_backward({input, gamma, beta, needs_output ? output : Tensor()});
    context->saved_data["statistics"] = torch::IValue::make_capsule(saved);
    context->saved_data["epsilon"] = bn->options.eps();
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
    return {
        input_gradient, give(gamma, sums.g_xhat), give(beta, sums.g), residual_gradient, {}, {}};
  }
};

// --- pooling ---

compute::PoolingShape pooling_shape(const Tensor& input, const Pool& pool) {
  const auto shape = shape_of(input);
  return {.batch = shape.batch,
          .channels = shape.channels,
          .height = shape.height,
          .width = shape.width,
          .kernel = pool.kernel,
          .stride = pool.stride,
          .padding = pool.padding,
          .max = pool.max};
}

struct Pooling : torch::autograd::Function<Pooling> {
  static Tensor forward(AutogradContext* context, const Tensor& given, int64_t kernel,
                        int64_t stride, int64_t padding, bool max) {
    const Tensor input = given.contiguous();
    const auto shape = pooling_shape(input, {kernel, stride, padding, max});
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
    const auto shape = pooling_shape(input_gradient, {pool[0], pool[1], pool[2], pool[3] != 0});
    compute::pooling_backward(shape, data(gradients[0].contiguous()),
                              static_cast<const std::byte*>(saved[0].data_ptr()),
                              input_gradient.data_ptr<float>());
    return {input_gradient, {}, {}, {}, {}};
  }
};

// --- dense layers ---

struct Linear : torch::autograd::Function<Linear> {
  static Tensor forward(AutogradContext* context, const Tensor& input, const Tensor& weight,
                        const Tensor& bias, bool relu) {
    Tensor output = torch::addmm(bias, input, weight.t());
    if (relu) output.relu_();
    context->save_for_backward({input, weight, bias, relu ? output : Tensor()});
    context->saved_data["input_gradient"] = input.requires_grad();
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
    const auto into = [](float* to, const Tensor& parameter) {
      return torch::from_blob(to, parameter.sizes());
    };
    Tensor bias_gradient = give_gradient(bias, [&](float* to, compute::Write write) {
      Tensor place = into(to, bias);
      if (write == compute::Write::add)
        place.add_(gradient.sum(0));
      else
        torch::sum_out(place, gradient, 0);
    });
    Tensor weight_gradient = give_gradient(weight, [&](float* to, compute::Write write) {
      Tensor place = into(to, weight);
      if (write == compute::Write::add)
        place.addmm_(gradient.t(), input);
      else
        torch::mm_out(place, gradient.t(), input);
    });
    Tensor input_gradient;
    if (context->saved_data["input_gradient"].toBool()) input_gradient = gradient.mm(weight);
    return {input_gradient, weight_gradient, bias_gradient, {}};
  }
};

bool is_float_on_cpu(const Tensor& tensor) {
  return tensor.scalar_type() == torch::kFloat32 && tensor.device().is_cpu();
}

}  // namespace

Tensor to_blocked(const Tensor& plain) {
  return plain.view({plain.size(0), plain.size(1) / kBlock, kBlock, plain.size(2), plain.size(3)})
      .permute({0, 1, 3, 4, 2})
      .contiguous();
}

Tensor to_plain(const Tensor& image) {
  if (!is_blocked(image)) return image;
  return image.permute({0, 1, 4, 2, 3})
      .reshape({image.size(0), image.size(1) * kBlock, image.size(2), image.size(3)});
}

bool takes(const Tensor& input, const torch::nn::Conv2dImpl& conv) {
  const auto& options = conv.options;
  return compute_options().blocked_layout && is_float_on_cpu(input) && options.groups() == 1 &&
         options.dilation()->at(0) == 1 && options.dilation()->at(1) == 1 &&
         options.stride()->at(0) == options.stride()->at(1) &&
         c10::holds_alternative<torch::ExpandingArray<2>>(options.padding()) &&
         c10::holds_alternative<torch::enumtype::kZeros>(options.padding_mode()) &&
         options.out_channels() % kBlock == 0 &&
         // The kernels give no gradient to a plain image.
         (is_blocked(input) || options.in_channels() % kBlock == 0 || !input.requires_grad());
}

Tensor conv(const Tensor& input, const torch::nn::Conv2dImpl& conv, bool relu) {
  const bool convert = !is_blocked(input) && conv.options.in_channels() % kBlock == 0;
  const auto& padding = c10::get<torch::ExpandingArray<2>>(conv.options.padding());
  return Convolution::apply(convert ? to_blocked(input.contiguous()) : input, conv.weight,
                            optional(conv.bias), conv.options.stride()->at(0), padding->at(0),
                            padding->at(1), relu);
}

bool takes(const Tensor& input, const torch::nn::BatchNorm2dImpl& bn) {
  const bool statistics_of_batch = bn.is_training() || !bn.running_mean.defined();
  return is_blocked(input) && bn.weight.defined() &&
         (statistics_of_batch || !torch::GradMode::is_enabled());
}

Tensor batch_norm(const Tensor& input, torch::nn::BatchNorm2dImpl& bn, const Tensor& residual,
                  bool relu) {
  if (bn.is_training() || !bn.running_mean.defined())
    return BatchNorm::apply(input, bn.weight, bn.bias, optional(residual), &bn, relu);
  const Tensor x = input.contiguous();
  const Tensor added = residual.defined() ? residual.contiguous() : residual;
  const auto values = [](const Tensor& tensor) {
    return std::vector<float>(data(tensor), data(tensor) + tensor.numel());
  };
  Tensor output = torch::empty_like(x);
  compute::batch_norm_apply(shape_of(x), data(x), {values(bn.running_mean), values(bn.running_var)},
                            data(bn.weight), data(bn.bias), static_cast<float>(bn.options.eps()),
                            {.residual = data(added), .relu = relu}, output.data_ptr<float>());
  return output;
}

Tensor pool(const Tensor& input, const Pool& pool) {
  return Pooling::apply(input, pool.kernel, pool.stride, pool.padding, pool.max);
}

bool takes(const Tensor& input, const torch::nn::LinearImpl& linear) {
  return compute_options().blocked_layout && is_float_on_cpu(input) && input.dim() == 2 &&
         linear.bias.defined();
}

Tensor linear(const Tensor& input, const torch::nn::LinearImpl& linear, bool relu) {
  return Linear::apply(input, linear.weight, linear.bias, relu);
}

}  // namespace renkei::model::blocked
