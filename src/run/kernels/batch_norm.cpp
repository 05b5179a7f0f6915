#include "compute/batch_norm.h"

#include "run/kernels/images.h"
#include "run/kernels/registry.h"

namespace renkei::run::kernels {
namespace {

struct RunningStatistics {
  std::optional<Tensor> mean, variance;  // none of them, or both
  std::optional<Tensor> batches;         // how many there were, where they are counted
  std::optional<double> momentum;        // none: the mean over all batches
};

void update_running_statistics(const RunningStatistics& running,
                               const compute::ChannelStatistics& statistics, double values,
                               const ExecutionContext* context) {
  if (!running.mean) return;
  if (running.batches) running.batches->add_(1);
  double momentum = running.momentum ? *running.momentum : 1 / running.batches->item<double>();
  if (context && context->batch_norm.mode == BatchNormMode::last) momentum = 1;
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

bool synchronised(const ExecutionContext* context) {
  return context && context->batch_norm.mode == BatchNormMode::synchronised;
}

// Statistics of all ranks from those of each; `values` is per channel, of this rank, then of all.
void combine_over_ranks(compute::ChannelStatistics& statistics, double& values,
                        const ExecutionContext& context) {
  const size_t channels = statistics.mean.size();
  std::vector<double> sums{values};
  for (const float mean : statistics.mean) sums.push_back(values * static_cast<double>(mean));
  for (size_t c = 0; c < channels; ++c) {
    const auto mean = static_cast<double>(statistics.mean[c]);
    sums.push_back(values * (static_cast<double>(statistics.variance[c]) + mean * mean));
  }
  context.batch_norm.sum_over_ranks(sums);
  values = sums[0];
  for (size_t c = 0; c < channels; ++c) {
    const double mean = sums[1 + c] / values;
    statistics.mean[c] = static_cast<float>(mean);
    statistics.variance[c] =
        static_cast<float>(std::max(0.0, sums[1 + channels + c] / values - mean * mean));
  }
}

compute::BatchNormSums sums_over_ranks(const compute::BatchNormSums& mine,
                                       const ExecutionContext& context) {
  std::vector<double> sums(mine.g.begin(), mine.g.end());
  sums.insert(sums.end(), mine.g_xhat.begin(), mine.g_xhat.end());
  context.batch_norm.sum_over_ranks(sums);
  const auto middle = sums.begin() + static_cast<ptrdiff_t>(mine.g.size());
  return {{sums.begin(), middle}, {middle, sums.end()}};
}

struct BatchNorm : torch::autograd::Function<BatchNorm> {
  static Tensor forward(AutogradContext* saved_for, const Tensor& given, const Tensor& gamma,
                        const Tensor& beta, const std::optional<Tensor>& residual,
                        const RunningStatistics* running, double eps, bool relu,
                        int64_t context_argument) {
    const auto* context = ExecutionContext::from_argument(context_argument);
    const Tensor input = given.contiguous();
    const Tensor added = residual ? residual->contiguous() : Tensor();
    const auto shape = shape_of(input);
    const auto epsilon = static_cast<float>(eps);
    Tensor output = torch::empty_like(input);
    auto saved = c10::make_intrusive<SavedStatistics>();
    saved->values = static_cast<double>(shape.batch * shape.pixels());
    const compute::BatchNormTail tail{.residual = data(added), .relu = relu};
    if (synchronised(context)) {
      saved->statistics = compute::batch_norm_statistics(shape, data(input));
      combine_over_ranks(saved->statistics, saved->values, *context);
      context->batch_norm.check_values(saved->values);
      compute::batch_norm_apply(shape, data(input), saved->statistics, data(gamma), data(beta),
                                epsilon, tail, place(output));
    } else {
      if (context) context->batch_norm.check_values(saved->values);
      saved->statistics = compute::batch_norm_forward(shape, data(input), data(gamma), data(beta),
                                                      epsilon, tail, place(output));
    }
    update_running_statistics(*running, saved->statistics, saved->values, context);
    const bool needs_output = relu && added.defined();
    saved_for->save_for_backward({input, gamma, beta, needs_output ? output : Tensor()});
    saved_for->saved_data["statistics"] = torch::IValue::make_capsule(saved);
    saved_for->saved_data["epsilon"] = eps;
    saved_for->saved_data["relu"] = relu;
    saved_for->saved_data["residual"] = added.defined();
    saved_for->saved_data["context"] = context_argument;
    return output;
  }

  static variable_list backward(AutogradContext* saved_for, variable_list gradients) {
    const auto saved = saved_for->get_saved_variables();
    auto* context = ExecutionContext::from_argument(saved_for->saved_data["context"].toInt());
    const Tensor &input = saved[0], &gamma = saved[1], &beta = saved[2], &output = saved[3];
    const auto capsule = saved_for->saved_data["statistics"].toCapsule();
    const auto& forward = static_cast<SavedStatistics&>(*capsule);
    const bool relu = saved_for->saved_data["relu"].toBool();
    const bool has_residual = saved_for->saved_data["residual"].toBool();
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
        .epsilon = static_cast<float>(saved_for->saved_data["epsilon"].toDouble()),
        .relu = relu,
        .y_gradient = data(gradient),
        .x_gradient = place(input_gradient),
        .residual_gradient = has_residual && relu ? place(residual_gradient) : nullptr};
    compute::BatchNormSums sums;  // of this rank: gradients of parameters are added up later
    if (synchronised(context)) {
      sums = compute::batch_norm_backward_sums(work);
      compute::batch_norm_backward_apply(work, sums_over_ranks(sums, *context), forward.values);
    } else {
      sums = compute::batch_norm_backward(work);
    }
    const auto give = [context](const Tensor& parameter, const std::vector<float>& values) {
      return give_gradient(context, parameter, [&](float* to, compute::Write write) {
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
            {},
            {}};
  }
};

Tensor batch_norm_kernel(const Tensor& input, const Tensor& gamma, const Tensor& beta,
                         const std::optional<Tensor>& running_mean,
                         const std::optional<Tensor>& running_variance,
                         const std::optional<Tensor>& batches,
                         const std::optional<Tensor>& residual, std::optional<double> momentum,
                         double epsilon, bool relu, int64_t context) {
  if (input.is_meta()) return blank_result(input, input.sizes());
  const RunningStatistics running{running_mean, running_variance, batches, momentum};
  return BatchNorm::apply(input, gamma, beta, residual, &running, epsilon, relu, context);
}

Tensor normalise_kernel(const Tensor& input, const Tensor& gamma, const Tensor& beta,
                        const Tensor& mean, const Tensor& variance,
                        const std::optional<Tensor>& residual, double epsilon, bool relu, int64_t) {
  if (input.is_meta()) return blank_result(input, input.sizes());
  const Tensor x = input.contiguous();
  const Tensor added = residual ? residual->contiguous() : Tensor();
  const auto values = [](const Tensor& tensor) {
    return std::vector<float>(data(tensor), data(tensor) + tensor.numel());
  };
  Tensor output = torch::empty_like(x);
  compute::batch_norm_apply(shape_of(x), data(x), {values(mean), values(variance)}, data(gamma),
                            data(beta), static_cast<float>(epsilon),
                            {.residual = data(added), .relu = relu}, place(output));
  return output;
}

}  // namespace

// batch_norm normalises by the statistics of the batch, adds the residual where there is one, and
// applies a ReLU where asked; it updates the running statistics where they are given. normalise
// does the same by given statistics, for evaluation: without gradients.
void register_batch_norm(torch::Library& library) {
  library.def(
      "batch_norm(Tensor input, Tensor gamma, Tensor beta, Tensor? running_mean, "
      "Tensor? running_variance, Tensor? batches, Tensor? residual, float? momentum, "
      "float epsilon, bool relu, int context=0) -> Tensor",
      &batch_norm_kernel);
  library.def(
      "normalise(Tensor input, Tensor gamma, Tensor beta, Tensor mean, Tensor variance, "
      "Tensor? residual, float epsilon, bool relu, int context=0) -> Tensor",
      &normalise_kernel);
}

}  // namespace renkei::run::kernels
