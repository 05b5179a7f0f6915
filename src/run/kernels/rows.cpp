// Operations on rows of features: what transformers do beside dense layers.
#include "compute/cross_entropy.h"
#include "compute/dropout.h"
#include "compute/layer_norm.h"
#include "run/kernels/common.h"
#include "run/kernels/registry.h"

namespace renkei::run::kernels {
namespace {

struct LayerNorm : torch::autograd::Function<LayerNorm> {
  static Tensor forward(AutogradContext* saved_for, const Tensor& given,
                        const std::optional<Tensor>& gamma, const std::optional<Tensor>& beta,
                        double epsilon, int64_t context) {
    const Tensor input = given.contiguous();
    const Tensor scale = gamma.value_or(Tensor()), shift = beta.value_or(Tensor());
    const compute::RowShape shape = rows_of(input);
    Tensor output = torch::empty_like(input), statistics = torch::empty({2, shape.rows});
    compute::layer_norm_forward(shape, data(input), data(scale), data(shift),
                                static_cast<float>(epsilon), place(output), place(statistics),
                                place(statistics) + shape.rows);
    saved_for->save_for_backward({input, scale, shift, statistics});
    saved_for->saved_data["context"] = context;
    saved_for->saved_data["input_gradient"] = given.requires_grad();
    return output;
  }

  static variable_list backward(AutogradContext* saved_for, variable_list gradients) {
    const auto saved = saved_for->get_saved_variables();
    const Tensor &input = saved[0], &gamma = saved[1], &beta = saved[2], &statistics = saved[3];
    auto* context = ExecutionContext::from_argument(saved_for->saved_data["context"].toInt());
    const Tensor gradient = gradients[0].contiguous();
    Tensor input_gradient;
    if (saved_for->saved_data["input_gradient"].toBool()) input_gradient = torch::empty_like(input);
    const compute::RowShape shape = rows_of(input);
    const compute::LayerNormBackward work{
        .shape = shape,
        .x = data(input),
        .mean = data(statistics),
        .inverse_deviation = data(statistics) + shape.rows,
        .gamma = data(gamma),
        .y_gradient = data(gradient),
        .x_gradient = input_gradient.defined() ? place(input_gradient) : nullptr};
    const Place of_gamma = place_for(context, gamma), of_beta = place_for(context, beta);
    compute::layer_norm_backward(work, of_gamma.write, of_gamma.data, of_beta.write, of_beta.data);
    return {input_gradient, of_gamma.gradient, of_beta.gradient, {}, {}};
  }
};

struct Dropout : torch::autograd::Function<Dropout> {
  static Tensor forward(AutogradContext* saved_for, const Tensor& given, double share,
                        int64_t context) {
    const auto* execution = ExecutionContext::from_argument(context);
    const compute::Dropout dropout{.key = execution ? execution->operation_seed : 0,
                                   .probability = share};
    const Tensor input = given.contiguous();
    Tensor output = torch::empty_like(input);
    compute::dropout(dropout, input.numel(), data(input), place(output));
    saved_for->saved_data["key"] = static_cast<int64_t>(dropout.key);
    saved_for->saved_data["share"] = share;
    return output;
  }

  static variable_list backward(AutogradContext* saved_for, variable_list gradients) {
    const compute::Dropout dropout{
        .key = static_cast<uint64_t>(saved_for->saved_data["key"].toInt()),
        .probability = saved_for->saved_data["share"].toDouble()};
    const Tensor gradient = gradients[0].contiguous();
    Tensor input_gradient = torch::empty_like(gradient);
    compute::dropout(dropout, gradient.numel(), data(gradient), place(input_gradient));
    return {input_gradient, {}, {}};
  }
};

struct CrossEntropy : torch::autograd::Function<CrossEntropy> {
  static Tensor forward(AutogradContext* saved_for, const Tensor& given, const Tensor& target,
                        int64_t ignored, int64_t reduction) {
    const Tensor logits = given.contiguous(), labels = target.contiguous();
    const compute::RowShape shape = rows_of(logits);
    Tensor losses = torch::empty({shape.rows}), log_sums = torch::empty({shape.rows});
    compute::cross_entropy_forward(shape, data(logits), labels.const_data_ptr<int64_t>(),
                                   place(losses), place(log_sums), ignored);
    saved_for->save_for_backward({logits, labels, log_sums});
    saved_for->saved_data["ignored"] = ignored;
    if (reduction == at::Reduction::None) return losses;
    double divisor = 1;
    if (reduction == at::Reduction::Mean) divisor = labels.ne(ignored).sum().item<double>();
    saved_for->saved_data["divisor"] = divisor;
    return losses.sum() / divisor;
  }

  static variable_list backward(AutogradContext* saved_for, variable_list gradients) {
    const auto saved = saved_for->get_saved_variables();
    const Tensor &logits = saved[0], &labels = saved[1], &log_sums = saved[2];
    Tensor of_loss = gradients[0];
    if (of_loss.dim() == 0)
      of_loss = (of_loss / saved_for->saved_data["divisor"].toDouble()).expand({logits.size(0)});
    of_loss = of_loss.contiguous();
    Tensor gradient = torch::empty_like(logits);
    compute::cross_entropy_backward(rows_of(logits), data(logits), labels.const_data_ptr<int64_t>(),
                                    data(log_sums), data(of_loss), place(gradient),
                                    saved_for->saved_data["ignored"].toInt());
    return {gradient, {}, {}, {}};
  }
};

// Adds each row to the gradient of the row that was looked up, in their order.
void add_rows(const Tensor& rows, const Tensor& indices, int64_t padding, float* to) {
  const int64_t columns = rows.size(-1);
  const int64_t* index = indices.const_data_ptr<int64_t>();
  const float* from = data(rows);
  for (int64_t i = 0; i < indices.numel(); ++i, from += columns) {
    if (index[i] == padding) continue;
    float* row = to + index[i] * columns;
    for (int64_t c = 0; c < columns; ++c) row[c] += from[c];
  }
}

struct Embedding : torch::autograd::Function<Embedding> {
  static Tensor forward(AutogradContext* saved_for, const Tensor& weight, const Tensor& given,
                        int64_t padding, int64_t context) {
    const Tensor indices = given.contiguous();
    saved_for->save_for_backward({weight, indices});
    saved_for->saved_data["padding"] = padding;
    saved_for->saved_data["context"] = context;
    return torch::embedding(weight, indices);
  }

  static variable_list backward(AutogradContext* saved_for, variable_list gradients) {
    const auto saved = saved_for->get_saved_variables();
    const Tensor &weight = saved[0], &indices = saved[1];
    auto* context = ExecutionContext::from_argument(saved_for->saved_data["context"].toInt());
    const int64_t padding = saved_for->saved_data["padding"].toInt();
    const Tensor rows = gradients[0].contiguous();
    // Sums of micro-batches must not depend on which rank has them: first the sum of this one.
    Tensor of_weight = give_gradient(context, weight, [&](float* to, compute::Write write) {
      if (write == compute::Write::replace) {
        std::fill_n(to, weight.numel(), 0.0f);
        return add_rows(rows, indices, padding, to);
      }
      const auto [used, position] = at::_unique(indices.flatten(), true, true);
      Tensor sums = torch::zeros({used.numel(), weight.size(1)});
      const Tensor all = torch::where(indices.flatten() == padding, -1, position);
      add_rows(rows, all, -1, place(sums));
      Tensor whole = torch::from_blob(to, weight.sizes());
      whole.index_add_(0, used, sums);
    });
    return {of_weight, {}, {}, {}};
  }
};

Tensor layer_norm(const Tensor& input, const std::optional<Tensor>& weight,
                  const std::optional<Tensor>& bias, double epsilon, int64_t context) {
  if (input.is_meta()) return blank_result(input, input.sizes());
  return LayerNorm::apply(input, weight, bias, epsilon, context);
}

Tensor dropout(const Tensor& input, double p, int64_t context) {
  if (input.is_meta()) return blank_result(input, input.sizes());
  return Dropout::apply(input, p, context);
}

Tensor cross_entropy(const Tensor& logits, const Tensor& target, int64_t ignore_index,
                     int64_t reduction, int64_t) {
  if (logits.is_meta())
    return blank_result(logits,
                        reduction == at::Reduction::None ? target.sizes() : at::IntArrayRef());
  return CrossEntropy::apply(logits, target, ignore_index, reduction);
}

Tensor embedding(const Tensor& weight, const Tensor& indices, int64_t padding_idx,
                 int64_t context) {
  if (weight.is_meta()) {
    std::vector<int64_t> sizes = indices.sizes().vec();
    sizes.push_back(weight.size(1));
    return blank_result(weight, sizes);
  }
  return Embedding::apply(weight, indices, padding_idx, context);
}

}  // namespace

void register_rows(torch::Library& library) {
  library.def(
      "layer_norm(Tensor input, Tensor? weight, Tensor? bias, float epsilon, int context=0) -> "
      "Tensor",
      &layer_norm);
  library.def("dropout(Tensor input, float p, int context=0) -> Tensor", &dropout);
  library.def(
      "cross_entropy(Tensor logits, Tensor target, int ignore_index, int reduction, "
      "int context=0) -> Tensor",
      &cross_entropy);
  library.def("embedding(Tensor weight, Tensor indices, int padding_idx, int context=0) -> Tensor",
              &embedding);
}

}  // namespace renkei::run::kernels
