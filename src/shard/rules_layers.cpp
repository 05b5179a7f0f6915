// Products, convolutions, attention, normalisation, look-ups and losses.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "shard/rule_writer.h"

namespace renkei::shard {
namespace {

using program::kNoValue;
using program::Op;
using program::Size;
using program::ValueId;
using With = RuleWriter::With;

std::string named(std::string_view name, int64_t blocks) {
  return blocks == 1 ? std::string(name) : fmt::format("{}/{}", name, blocks);
}

// y = x W + b, where `in` and `out` are the dimensions of W that are summed over and kept.
struct Dense {
  ValueId x, weight, bias;
  int in, out;
};

void dense(RuleWriter& rule, const Dense& layer) {
  const ValueId x = layer.x, weight = layer.weight, bias = layer.bias;
  const int in = layer.in, out = layer.out;
  const int last = rule.rank_of(x) - 1;
  const int result_last = static_cast<int>(rule.output_sizes().size()) - 1;
  for (const int64_t blocks : rule.options().blocks) {
    if (rule.can_split(weight, out, blocks))
      rule.add(named("column", blocks),
               {{x, kCopied}, {weight, split(out, blocks)}, {bias, split(0, blocks)}},
               split(result_last, blocks));
    if (rule.can_split(weight, in, blocks) && rule.can_split(x, last, blocks))
      rule.add(named("row", blocks),
               {{x, split(last, blocks)}, {weight, split(in, blocks)}, {bias, kPartial}}, kPartial);
  }
  rule.for_splits(x, [&](int dim, int64_t blocks) {
    if (dim < last)
      rule.add(fmt::format("rows {}", name_of(split(dim, blocks))),
               {{x, split(dim, blocks)}, {weight, kCopied}, {bias, kCopied}}, split(dim, blocks));
  });
}

void linear(RuleWriter& rule) {
  dense(rule, {rule.tensor("input"), rule.tensor("weight"), rule.tensor("bias"), 1, 0});
}

void addmm(RuleWriter& rule) {
  const ValueId bias = rule.tensor("self");
  if (bias == kNoValue || rule.rank_of(bias) != 1 || rule.real("beta", 1) != 1.0) return;
  dense(rule, {rule.tensor("mat1"), rule.tensor("mat2"), bias, 0, 1});
}

void matmul(RuleWriter& rule) {
  const ValueId a = rule.tensor("self"), b = rule.tensor({"mat2", "other"});
  if (a == kNoValue || b == kNoValue || a == b || rule.rank_of(a) < 2 || rule.rank_of(b) < 2)
    return;
  const ValueId output = rule.op().outputs.front();
  const int of_a = rule.rank_of(a), of_b = rule.rank_of(b), rank = rule.rank_of(output);
  rule.for_splits(a, [&](int dim, int64_t blocks) {
    if (dim == of_a - 2)
      rule.add(named("rows", blocks), {{a, split(dim, blocks)}, {b, kCopied}},
               split(rank - 2, blocks));
    if (dim == of_a - 1)
      rule.add(named("row", blocks), {{a, split(dim, blocks)}, {b, split(of_b - 2, blocks)}},
               kPartial);
  });
  rule.for_splits(b, [&](int dim, int64_t blocks) {
    if (dim == of_b - 1)
      rule.add(named("column", blocks), {{a, kCopied}, {b, split(dim, blocks)}},
               split(rank - 1, blocks));
  });
  rule.for_splits(output, [&](int dim, int64_t blocks) {
    if (dim >= rank - 2) return;
    const auto layout_of = [&](ValueId value, int value_rank) {
      const int here = dim - (rank - value_rank);
      return here < 0 || rule.sizes(value)[static_cast<size_t>(here)] == Size(1)
                 ? kCopied
                 : split(here, blocks);
    };
    rule.add(name_of(split(dim, blocks)), {{a, layout_of(a, of_a)}, {b, layout_of(b, of_b)}},
             split(dim, blocks));
  });
}

void convolution(RuleWriter& rule) {
  const ValueId x = rule.tensor("input"), weight = rule.tensor("weight"),
                bias = rule.tensor("bias");
  const auto groups = rule.integer("groups", 1);
  if (x == kNoValue || weight == kNoValue || !groups || rule.rank_of(x) != rule.rank_of(weight))
    return;
  if (rule.can_split(x, 0, 1))
    rule.add(name_of(split(0)), {{x, split(0)}, {weight, kCopied}, {bias, kCopied}}, split(0));
  for (const int64_t blocks : rule.options().blocks) {
    if (*groups > 1) {
      if (blocks == 1 && *groups % rule.parts() == 0)
        rule.add("groups", {{x, split(1)}, {weight, split(0)}, {bias, split(0)}}, split(1))
            .localise = [local = *groups / rule.parts()](Op& op) {
          set_argument(op, "groups", local);
        };
      continue;
    }
    if (rule.can_split(weight, 0, blocks))
      rule.add(named("column", blocks),
               {{x, kCopied}, {weight, split(0, blocks)}, {bias, split(0, blocks)}},
               split(1, blocks));
    if (rule.can_split(weight, 1, blocks))
      rule.add(named("row", blocks),
               {{x, split(1, blocks)}, {weight, split(1, blocks)}, {bias, kPartial}}, kPartial);
  }
}

// Samples and heads by themselves.
void attention(RuleWriter& rule) {
  const ValueId query = rule.tensor("query"), key = rule.tensor("key"),
                value = rule.tensor("value");
  const ValueId mask = rule.tensor("attn_mask");
  if (query == kNoValue || key == kNoValue || value == kNoValue) return;
  const auto share = rule.real("dropout_p", 0);
  const int rank = rule.rank_of(query);
  if (!share || rule.rank_of(key) != rank || rule.rank_of(value) != rank) return;
  const bool grouped = rule.flag("enable_gqa", false);
  rule.for_splits(query, [&](int dim, int64_t blocks) {
    if (dim >= rank - 2 || blocks != 1) return;
    const Size& size = rule.sizes(query)[static_cast<size_t>(dim)];
    for (const ValueId other : {key, value})
      if (!rule.can_split(other, dim, 1) ||
          (rule.sizes(other)[static_cast<size_t>(dim)] != size && !grouped))
        return;
    std::vector<With> with{{query, split(dim)}, {key, split(dim)}, {value, split(dim)}};
    if (mask != kNoValue) {
      const int here = dim - (rank - rule.rank_of(mask));
      const bool repeated = here < 0 || rule.sizes(mask)[static_cast<size_t>(here)] == Size(1);
      with.push_back({mask, repeated ? kCopied : split(here)});
    }
    Strategy& made = rule.add(name_of(split(dim)), with, split(dim));
    if (*share <= 0) return;
    const int64_t unit = batch_unit(rule.program(), size);
    made.localise = [=, parts = int64_t{rule.parts()}](Op& op) {
      op.target = "renkei.tp_attention.default";
      set_argument(op, "dim", int64_t{dim});
      set_argument(op, "parts", parts);
      set_argument(op, "unit", unit);
    };
  });
}

void layer_norm(RuleWriter& rule) {
  const ValueId x = rule.tensor("input"), weight = rule.tensor("weight"),
                bias = rule.tensor("bias");
  const auto shape = rule.integers("normalized_shape");
  if (x == kNoValue || !shape) return;
  const int rows = rule.rank_of(x) - static_cast<int>(shape->size());
  rule.for_splits(x, [&](int dim, int64_t blocks) {
    if (dim < rows)
      rule.add(name_of(split(dim, blocks)),
               {{x, split(dim, blocks)}, {weight, kCopied}, {bias, kCopied}}, split(dim, blocks));
  });
}

// Groups of channels are normalised by themselves in each sample.
void group_norm(RuleWriter& rule) {
  const ValueId x = rule.tensor("input"), weight = rule.tensor("weight"),
                bias = rule.tensor("bias");
  if (x != kNoValue && rule.can_split(x, 0, 1))
    rule.add(name_of(split(0)), {{x, split(0)}, {weight, kCopied}, {bias, kCopied}}, split(0));
}

// By channels. Its statistics are over the samples, which therefore stay together.
void batch_norm(RuleWriter& rule) {
  const ValueId x = rule.tensor("input");
  if (x == kNoValue || rule.rank_of(x) < 2) return;
  for (const int64_t blocks : rule.options().blocks)
    if (rule.can_split(x, 1, blocks)) {
      std::vector<With> with{{x, split(1, blocks)}};
      for (const char* name : {"weight", "bias", "running_mean", "running_var"})
        with.push_back({rule.tensor(name), split(0, blocks)});
      rule.add(named("channels", blocks), with, split(1, blocks));
    }
}

// Images keep samples and channels apart.
void pooling(RuleWriter& rule) {
  const ValueId x = rule.tensor({"self", "input"});
  if (x == kNoValue || rule.rank_of(x) != 4) return;
  rule.for_splits(x, [&](int dim, int64_t blocks) {
    if (dim < 2)
      rule.add(name_of(split(dim, blocks)), {{x, split(dim, blocks)}}, split(dim, blocks));
  });
}

void embedding(RuleWriter& rule) {
  const ValueId weight = rule.tensor("weight"), indices = rule.tensor("indices");
  const auto padding = rule.integer("padding_idx", -1);
  if (weight == kNoValue || indices == kNoValue || !padding ||
      rule.flag("scale_grad_by_freq", false) || rule.flag("sparse", false))
    return;
  const int rank = rule.rank_of(indices);
  for (const int64_t blocks : rule.options().blocks)
    if (rule.can_split(weight, 1, blocks))
      rule.add(named("column", blocks), {{weight, split(1, blocks)}}, split(rank, blocks));
  rule.for_splits(indices, [&](int dim, int64_t blocks) {
    rule.add(fmt::format("rows {}", name_of(split(dim, blocks))),
             {{weight, kCopied}, {indices, split(dim, blocks)}}, split(dim, blocks));
  });
  if (rule.can_split(weight, 0, 1) && rule.program().value(weight).dtype == program::DType::f32)
    rule.add("vocabulary", {{weight, split(0)}}, kPartial).localise =
        [=, parts = int64_t{rule.parts()}](Op& op) {
          op = {.target = "renkei.tp_embedding.default",
                .arguments = {{"weight", *find_argument(op, "weight")},
                              {"indices", *find_argument(op, "indices")},
                              {"padding_idx", *padding},
                              {"parts", parts}},
                .outputs = op.outputs,
                .module = op.module,
                .source = op.source,
                .no_grad = op.no_grad};
        };
}

// Reduction: 0 none, 1 mean, 2 sum.
void by_rows(RuleWriter& rule, ValueId values, ValueId target, int64_t reduction, int dims) {
  if (reduction == 1) return;
  rule.for_splits(values, [&](int dim, int64_t blocks) {
    if (dim >= dims) return;
    rule.add(fmt::format("rows {}", name_of(split(dim, blocks))),
             {{values, split(dim, blocks)}, {target, split(dim, blocks)}},
             reduction == 2 ? kPartial : split(dim, blocks));
  });
}

void cross_entropy(RuleWriter& rule) {
  const ValueId scores = rule.tensor("self"), target = rule.tensor("target");
  const auto reduction = rule.integer("reduction", 1), ignored = rule.integer("ignore_index", -100);
  if (scores == kNoValue || target == kNoValue || !reduction || !ignored ||
      rule.tensor("weight") != kNoValue || rule.rank_of(scores) != 2 || rule.rank_of(target) != 1 ||
      is_floating(rule.program().value(target).dtype))
    return;
  by_rows(rule, scores, target, *reduction, 1);
  if (rule.real("label_smoothing", 0) != 0.0 || !rule.can_split(scores, 1, 1) ||
      rule.program().value(scores).dtype != program::DType::f32)
    return;
  Strategy& classes = rule.add("classes", {{scores, split(1)}}, kWhole);
  const int64_t rows = batch_unit(rule.program(), rule.sizes(scores)[0]);
  classes.exchanged_bytes = 3.0 * 4 * static_cast<double>(std::max<int64_t>(rows, 1));
  classes.localise = [=, parts = int64_t{rule.parts()}](Op& op) {
    op = {.target = "renkei.tp_cross_entropy.default",
          .arguments = {{"logits", *find_argument(op, "self")},
                        {"target", *find_argument(op, "target")},
                        {"ignore_index", *ignored},
                        {"reduction", *reduction},
                        {"parts", parts}},
          .outputs = op.outputs,
          .module = op.module,
          .source = op.source,
          .no_grad = op.no_grad};
  };
}

void mse_loss(RuleWriter& rule) {
  const ValueId values = rule.tensor("self"), target = rule.tensor("target");
  const auto reduction = rule.integer("reduction", 1);
  if (values == kNoValue || target == kNoValue || !reduction ||
      rule.sizes(values) != rule.sizes(target))
    return;
  by_rows(rule, values, target, *reduction, rule.rank_of(values));
}

}  // namespace

Rule layer_rule(std::string_view name) {
  static const std::map<std::string_view, Rule> rules{{"linear", linear},
                                                      {"addmm", addmm},
                                                      {"mm", matmul},
                                                      {"bmm", matmul},
                                                      {"matmul", matmul},
                                                      {"conv1d", convolution},
                                                      {"conv2d", convolution},
                                                      {"conv3d", convolution},
                                                      {"scaled_dot_product_attention", attention},
                                                      {"layer_norm", layer_norm},
                                                      {"group_norm", group_norm},
                                                      {"batch_norm", batch_norm},
                                                      {"max_pool2d", pooling},
                                                      {"avg_pool2d", pooling},
                                                      {"adaptive_avg_pool2d", pooling},
                                                      {"embedding", embedding},
                                                      {"cross_entropy_loss", cross_entropy},
                                                      {"mse_loss", mse_loss}};
  const auto found = rules.find(name);
  return found == rules.end() ? nullptr : found->second;
}

}  // namespace renkei::shard
