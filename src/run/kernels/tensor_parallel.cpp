// Exchanges inside a tensor group as operations that autograd knows (shard/shard.h lists them), and
// operations that a rank computes a part of, where that needs more than a smaller tensor: dropout
// and attention with the random numbers of the whole, look-ups and cross entropy over a vocabulary
// that is divided.
#include <ATen/CPUGeneratorImpl.h>

#include "compute/cross_entropy.h"
#include "compute/dropout.h"
#include "run/kernels/common.h"
#include "run/kernels/registry.h"

namespace renkei::run::kernels {
namespace {

// What is done with a tensor on its way forward, and with its gradient on the way back.
enum class Action : int64_t { none, sum, part, gather, scatter, pad, first };

struct Conversion {
  Action forward, backward;
};
constexpr Conversion kCopy{Action::none, Action::sum}, kSum{Action::sum, Action::none},
    kSplit{Action::part, Action::gather}, kSlice{Action::part, Action::pad},
    kGather{Action::gather, Action::part}, kCollect{Action::gather, Action::scatter},
    kScatter{Action::scatter, Action::gather}, kFirst{Action::first, Action::none},
    kOnce{Action::none, Action::first};

const TensorGroup& group_of(int64_t context) {
  static const TensorGroup alone;
  const auto* execution = ExecutionContext::from_argument(context);
  return execution ? execution->tensor : alone;
}

Tensor done(Action action, const Tensor& tensor, const TensorCut& cut, const TensorGroup& group) {
  switch (action) {
    case Action::none:
      return tensor;
    case Action::sum:
      return summed(group, tensor, "sum of shares");
    case Action::part:
      return part_of(tensor, cut, group.index);
    case Action::gather:
      return gathered(group, tensor, cut);
    case Action::scatter:
      return scattered(group, tensor, cut);
    case Action::pad:
      return padded(tensor, cut, group.index);
    case Action::first:
      return group.index == 0 ? tensor : torch::zeros_like(tensor);
  }
  return {};
}

struct Exchange : torch::autograd::Function<Exchange> {
  static Tensor forward(AutogradContext* saved_for, const Tensor& input, Action forward,
                        Action backward, const TensorCut& cut, int64_t context) {
    saved_for->saved_data["backward"] = static_cast<int64_t>(backward);
    const auto numbers = cut.numbers();
    saved_for->saved_data["cut"] = std::vector<int64_t>(numbers.begin(), numbers.end());
    saved_for->saved_data["context"] = context;
    const Tensor output = done(forward, input, cut, group_of(context));
    return output.is_same(input) ? input.view_as(input) : output;
  }

  static variable_list backward(AutogradContext* saved_for, variable_list gradients) {
    const auto action = static_cast<Action>(saved_for->saved_data["backward"].toInt());
    const TensorCut cut = TensorCut::from(saved_for->saved_data["cut"].toIntVector());
    const int64_t context = saved_for->saved_data["context"].toInt();
    return {done(action, gradients[0], cut, group_of(context)), {}, {}, {}, {}};
  }
};

Tensor exchange(const Conversion& conversion, const Tensor& input, TensorCut cut, int64_t context) {
  const TensorGroup& group = group_of(context);
  cut.samples = group.communicator ? group.samples
                : cut.unit > 0     ? input.size(cut.dim) / cut.unit *
                                     (conversion.forward == Action::gather ? cut.parts : 1)
                               : 0;
  if (input.is_meta()) {
    std::vector<int64_t> sizes = input.sizes().vec();
    if (conversion.forward == Action::gather)
      sizes[static_cast<size_t>(cut.dim)] = cut.whole_of(input.size(cut.dim));
    else if (conversion.forward == Action::part || conversion.forward == Action::scatter)
      sizes[static_cast<size_t>(cut.dim)] = cut.length(input.size(cut.dim), 0) * cut.blocks;
    return blank_result(input, sizes);
  }
  return Exchange::apply(input, conversion.forward, conversion.backward, cut, context);
}

template <const Conversion& conversion>
Tensor exchange_whole(const Tensor& input, int64_t context) {
  return exchange(conversion, input, {}, context);
}

template <const Conversion& conversion>
Tensor exchange_parts(const Tensor& input, int64_t dim, int64_t blocks, int64_t parts, int64_t unit,
                      int64_t context) {
  return exchange(conversion, input, {.dim = dim, .blocks = blocks, .parts = parts, .unit = unit},
                  context);
}

// --- dropout of a part, by the places that its values have in the whole ---

void drop_part(const compute::Dropout& dropout, const TensorCut& cut, int64_t index,
               const Tensor& x, Tensor& y) {
  const int64_t dim = cut.dim, part = x.size(dim), whole = cut.whole_of(part);
  int64_t outer = 1, inner = 1;
  for (int64_t d = 0; d < dim; ++d) outer *= x.size(d);
  for (int64_t d = dim + 1; d < x.dim(); ++d) inner *= x.size(d);
  const int64_t length = part / cut.blocks, begin = cut.begin(whole, index);
  const float* from = data(x);
  float* to = place(y);
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t block = 0; block < cut.blocks; ++block) {
      const int64_t first = o * whole + block * (whole / cut.blocks) + begin;
      compute::dropout_from(dropout, first * inner, length * inner, from, to);
      from += length * inner;
      to += length * inner;
    }
}

struct PartDropout : torch::autograd::Function<PartDropout> {
  static Tensor forward(AutogradContext* saved_for, const Tensor& given, double share,
                        const TensorCut& cut, int64_t context) {
    const auto* execution = ExecutionContext::from_argument(context);
    const uint64_t key = execution ? execution->operation_seed : 0;
    const int64_t index = group_of(context).index;
    const Tensor input = given.contiguous();
    Tensor output = torch::empty_like(input);
    drop_part({.key = key, .probability = share}, cut, index, input, output);
    saved_for->saved_data["key"] = static_cast<int64_t>(key);
    saved_for->saved_data["share"] = share;
    saved_for->saved_data["index"] = index;
    const auto numbers = cut.numbers();
    saved_for->saved_data["cut"] = std::vector<int64_t>(numbers.begin(), numbers.end());
    return output;
  }

  static variable_list backward(AutogradContext* saved_for, variable_list gradients) {
    const compute::Dropout dropout{
        .key = static_cast<uint64_t>(saved_for->saved_data["key"].toInt()),
        .probability = saved_for->saved_data["share"].toDouble()};
    const Tensor gradient = gradients[0].contiguous();
    Tensor input_gradient = torch::empty_like(gradient);
    drop_part(dropout, TensorCut::from(saved_for->saved_data["cut"].toIntVector()),
              saved_for->saved_data["index"].toInt(), gradient, input_gradient);
    return {input_gradient, {}, {}, {}};
  }
};

TensorCut division_of_part(const Tensor& part, TensorCut cut, const TensorGroup& group) {
  if (cut.unit > 0)
    cut.samples = group.communicator ? group.samples : part.size(cut.dim) / cut.unit * cut.parts;
  return cut;
}

Tensor part_dropout(const Tensor& input, double p, int64_t dim, int64_t blocks, int64_t parts,
                    int64_t unit, int64_t context) {
  if (input.is_meta()) return blank_result(input, input.sizes());
  const TensorCut cut = division_of_part(
      input, {.dim = dim, .blocks = blocks, .parts = parts, .unit = unit}, group_of(context));
  return PartDropout::apply(input, p, cut, context);
}

// --- attention with dropout, of some heads or samples ---

// As Torch's own for the processor computes it where there is dropout, with the part that belongs
// here of the mask for all heads and samples.
Tensor part_attention(const Tensor& query, const Tensor& given_key, const Tensor& given_value,
                      const std::optional<Tensor>& mask, double dropout_p, bool is_causal,
                      std::optional<double> scale, bool enable_gqa, int64_t dim, int64_t parts,
                      int64_t unit, int64_t context) {
  std::vector<int64_t> sizes = query.sizes().vec();
  sizes.back() = given_value.size(-1);
  if (query.is_meta()) return blank_result(query, sizes);
  Tensor key = given_key, value = given_value;
  if (enable_gqa) {
    key = key.repeat_interleave(query.size(-3) / key.size(-3), -3);
    value = value.repeat_interleave(query.size(-3) / value.size(-3), -3);
  }
  const double factor = scale.value_or(1 / std::sqrt(static_cast<double>(query.size(-1))));
  Tensor scores =
      torch::matmul(query * std::sqrt(factor), (key * std::sqrt(factor)).transpose(-2, -1));
  if (is_causal) {
    const Tensor seen =
        torch::ones({query.size(-2), key.size(-2)}, torch::TensorOptions(torch::kBool)).tril();
    scores = scores.masked_fill(seen.logical_not(), -std::numeric_limits<double>::infinity());
  }
  if (mask && mask->scalar_type() == torch::kBool)
    scores = scores.masked_fill(mask->logical_not(), -std::numeric_limits<double>::infinity());
  else if (mask)
    scores = scores + *mask;
  const Tensor weights = at::_safe_softmax(scores, -1);  // rows that see nothing are zeros
  const TensorGroup& group = group_of(context);
  const TensorCut cut =
      division_of_part(weights, {.dim = dim, .parts = parts, .unit = unit}, group);
  const auto* execution = ExecutionContext::from_argument(context);
  at::Generator generator =
      at::make_generator<at::CPUGeneratorImpl>(execution ? execution->operation_seed : 0);
  std::vector<int64_t> whole = weights.sizes().vec();
  whole[static_cast<size_t>(dim)] = cut.whole_of(weights.size(dim));
  Tensor kept;
  {
    const torch::NoGradGuard no_grad;
    kept = torch::empty(whole, weights.options().requires_grad(false));
    kept.bernoulli_(1 - dropout_p, generator);
    kept = part_of(kept, cut, group.index).div_(1 - dropout_p);
  }
  return torch::matmul(weights * kept, value);
}

// --- a divided vocabulary ---

// Rows that other ranks have are zeros, but those that no rank has are an error.
Tensor part_embedding(const Tensor& weight, const Tensor& indices, int64_t padding_idx,
                      int64_t parts, int64_t context) {
  if (weight.is_meta()) {
    std::vector<int64_t> sizes = indices.sizes().vec();
    sizes.push_back(weight.size(1));
    return blank_result(weight, sizes);
  }
  const int64_t rows_of_all = weight.size(0) * parts;
  TORCH_CHECK_INDEX(indices.ge(0).logical_and(indices.lt(rows_of_all)).all().item<bool>(),
                    "index out of range in self");  // as Torch says it
  const int64_t first = group_of(context).index * weight.size(0);
  const Tensor here = indices - first;
  const Tensor elsewhere = here.lt(0).logical_or(here.ge(weight.size(0)));
  const int64_t padding = padding_idx - first;
  const Tensor rows = torch::embedding(weight, here.masked_fill(elsewhere, 0),
                                       padding >= 0 && padding < weight.size(0) ? padding : -1);
  return rows.masked_fill(elsewhere.unsqueeze(-1), 0);
}

struct PartCrossEntropy : torch::autograd::Function<PartCrossEntropy> {
  static Tensor forward(AutogradContext* saved_for, const Tensor& given, const Tensor& target,
                        int64_t ignored, int64_t reduction, int64_t parts, int64_t context) {
    const TensorGroup& group = group_of(context);
    const Tensor targets = target.to(torch::kInt64).contiguous();
    compute::check_targets({targets.size(0), given.size(1) * parts},
                           targets.const_data_ptr<int64_t>(), ignored);
    const Tensor logits = given.contiguous();
    const int64_t first = group.index * logits.size(1);
    const Tensor most = summed(group, logits.amax(1), "largest scores", comm::Reduction::max);
    const Tensor here = target - first;
    const Tensor elsewhere = here.lt(0).logical_or(here.ge(logits.size(1)));
    const Tensor label = here.masked_fill(elsewhere, 0);
    const Tensor of_label =
        logits.gather(1, label.unsqueeze(1)).squeeze(1).masked_fill(elsewhere, 0);
    const Tensor sums =
        summed(group, torch::stack({(logits - most.unsqueeze(1)).exp_().sum(1), of_label}),
               "sums of scores");
    const Tensor log_sums = sums[0].log() + most;
    const Tensor counts = target.ne(ignored);
    const Tensor losses = (log_sums - sums[1]) * counts;
    saved_for->save_for_backward({logits, label, elsewhere, log_sums, counts});
    if (reduction == at::Reduction::None) return losses;
    double divisor = 1;
    if (reduction == at::Reduction::Mean) divisor = counts.sum().item<double>();
    saved_for->saved_data["divisor"] = divisor;
    return losses.sum() / divisor;
  }

  static variable_list backward(AutogradContext* saved_for, variable_list gradients) {
    const auto saved = saved_for->get_saved_variables();
    const Tensor &logits = saved[0], &label = saved[1], &elsewhere = saved[2], &log_sums = saved[3],
                 &counts = saved[4];
    Tensor of_loss = gradients[0];
    if (of_loss.dim() == 0)
      of_loss = (of_loss / saved_for->saved_data["divisor"].toDouble()).expand({logits.size(0)});
    of_loss = of_loss * counts;
    Tensor gradient = (logits - log_sums.unsqueeze(1)).exp_();
    gradient.scatter_add_(1, label.unsqueeze(1),
                          elsewhere.logical_not().to(gradient.scalar_type()).neg().unsqueeze(1));
    gradient.mul_(of_loss.unsqueeze(1));
    return {gradient, {}, {}, {}, {}, {}};
  }
};

Tensor part_cross_entropy(const Tensor& logits, const Tensor& target, int64_t ignore_index,
                          int64_t reduction, int64_t parts, int64_t context) {
  if (logits.is_meta())
    return blank_result(logits,
                        reduction == at::Reduction::None ? target.sizes() : at::IntArrayRef());
  return PartCrossEntropy::apply(logits, target, ignore_index, reduction, parts, context);
}

}  // namespace

void register_tensor_parallel(torch::Library& library) {
  library.def("tp_copy(Tensor input, int context=0) -> Tensor", &exchange_whole<kCopy>);
  library.def("tp_sum(Tensor input, int context=0) -> Tensor", &exchange_whole<kSum>);
  library.def("tp_first(Tensor input, int context=0) -> Tensor", &exchange_whole<kFirst>);
  library.def("tp_once(Tensor input, int context=0) -> Tensor", &exchange_whole<kOnce>);
  const auto define = [&](const char* name, auto* function) {
    library.def(fmt::format("{}(Tensor input, int dim, int blocks, int parts, int unit, "
                            "int context=0) -> Tensor",
                            name)
                    .c_str(),
                function);
  };
  define("tp_split", &exchange_parts<kSplit>);
  define("tp_slice", &exchange_parts<kSlice>);
  define("tp_gather", &exchange_parts<kGather>);
  define("tp_collect", &exchange_parts<kCollect>);
  define("tp_scatter", &exchange_parts<kScatter>);
  library.def(
      "tp_dropout(Tensor input, float p, int dim, int blocks, int parts, int unit, "
      "int context=0) -> Tensor",
      &part_dropout);
  library.def(
      "tp_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, "
      "float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False, "
      "int dim, int parts, int unit, int context=0) -> Tensor",
      &part_attention);
  library.def(
      "tp_embedding(Tensor weight, Tensor indices, int padding_idx, int parts, int context=0) -> "
      "Tensor",
      &part_embedding);
  library.def(
      "tp_cross_entropy(Tensor logits, Tensor target, int ignore_index, int reduction, int parts, "
      "int context=0) -> Tensor",
      &part_cross_entropy);
}

}  // namespace renkei::run::kernels
