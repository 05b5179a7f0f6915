// Every strategy of every operation in the table of shard/rules.h, against the operation as it is:
// results and gradients, on random numbers and shapes.
#include <gtest/gtest.h>

#include <ATen/CPUGeneratorImpl.h>

#include <random>

#include "comm/transport/thread_transport.h"
#include "program/builder.h"
#include "run/executor.h"
#include "run/model.h"
#include "shard/shard.h"
#include "tests/run/networks.h"

namespace renkei::run {
namespace {

using program::Argument;
using program::Builder;
using program::DType;
using program::List;
using program::NamedArgument;
using program::Reference;
using program::Size;
using program::ValueId;

struct Case {
  std::string name;
  std::function<ValueId(Builder&)> make;
};

// Numbers are small, so that sums of few of them are exact enough.
torch::Tensor numbers(const std::vector<int64_t>& sizes, int64_t seed) {
  const at::Generator generator =
      at::make_generator<at::CPUGeneratorImpl>(static_cast<uint64_t>(seed));
  return torch::randn(sizes, generator);
}

ValueId floats(Builder& builder, const char* name, std::vector<int64_t> sizes) {
  return builder.parameter(name, std::move(sizes),
                           {.kind = program::Initial::Kind::normal, .b = 1});
}

ValueId indices(Builder& builder, std::vector<Size> sizes) {
  return builder.input("indices", DType::i64, std::move(sizes));
}

struct Run {
  std::vector<torch::Tensor> outputs, gradients;
};

Run compute(const program::Program& program, std::vector<torch::Tensor> state,
            const std::vector<torch::Tensor>& inputs, ExecutionContext& context) {
  for (size_t i = 0; i < state.size(); ++i)
    if (program.state[i].kind == program::StateKind::parameter) state[i].requires_grad_();
  const program::Program fast = rewrite::rewrite(program, all_rewrites()).program;
  const Executor executor(fast, whole(fast));
  context.random = {.seed = 3, .step = 1, .micro_batch = 0};
  context.tensor.samples = 4;
  Run run;
  run.outputs = executor.run(inputs, tensors_at(state, executor.state()), 4, context);
  torch::Tensor loss = torch::zeros({});
  for (size_t i = 0; i < run.outputs.size(); ++i)
    if (run.outputs[i].requires_grad())
      loss = loss + (run.outputs[i] * numbers(run.outputs[i].sizes().vec(), 77)).sum();
  if (loss.requires_grad()) loss.backward();
  for (const torch::Tensor& tensor : state) run.gradients.push_back(tensor.grad());
  return run;
}

torch::Tensor part(const torch::Tensor& whole, const shard::Slice& slice) {
  if (!slice.is_split()) return whole.clone();
  return part_of(
      whole, {.dim = slice.layout.dim, .blocks = slice.layout.blocks, .parts = slice.part.parts},
      slice.part.index);
}

void expect_close(const torch::Tensor& got, const torch::Tensor& expected,
                  const std::string& what) {
  ASSERT_EQ(got.sizes(), expected.sizes()) << what;
  if (expected.numel() == 0) return;
  const torch::Tensor a = got.to(torch::kFloat64), b = expected.to(torch::kFloat64);
  EXPECT_LE((a - b).abs().max().item<double>(), 2e-5 * std::max(1.0, b.abs().max().item<double>()))
      << what;
}

void check_strategy(const program::Program& program, const Run& alone,
                    const std::vector<torch::Tensor>& state,
                    const std::vector<torch::Tensor>& inputs, const shard::Choice& choice,
                    int parts, const std::string& what) {
  std::vector<Run> runs(static_cast<size_t>(parts));
  std::vector<std::vector<shard::Slice>> slices(static_cast<size_t>(parts));
  comm::run_as_threads(parts, [&](comm::Transport& transport) {
    comm::Communicator communicator(transport, {});
    const shard::Sharded mine = shard::shard(
        program, {.part = {.parts = parts, .index = transport.rank()}, .choice = choice});
    std::vector<torch::Tensor> local;
    for (size_t i = 0; i < state.size(); ++i) local.push_back(part(state[i], mine.state[i]));
    ExecutionContext context;
    context.tensor = {.communicator = &communicator, .index = transport.rank()};
    runs[static_cast<size_t>(transport.rank())] = compute(mine.program, local, inputs, context);
    slices[static_cast<size_t>(transport.rank())] = mine.state;
  });
  for (size_t i = 0; i < alone.outputs.size(); ++i)
    for (const Run& run : runs) expect_close(run.outputs[i], alone.outputs[i], what + ": output");
  for (size_t i = 0; i < state.size(); ++i) {
    if (!alone.gradients[i].defined()) continue;
    const std::string where = what + ": gradient of " + program.state[i].name;
    if (slices[0][i].is_summed()) {
      torch::Tensor sum = torch::zeros_like(alone.gradients[i]);
      for (const Run& run : runs) sum += run.gradients[i];
      expect_close(sum, alone.gradients[i], where);
      continue;
    }
    for (size_t r = 0; r < runs.size(); ++r)
      expect_close(runs[r].gradients[i], part(alone.gradients[i], slices[r][i]), where);
  }
}

// Returns how many strategies there were, beside computing it whole.
int check_case(const Case& test, int parts) {
  Builder builder(test.name);
  const ValueId result = test.make(builder);
  const program::Op op = builder.program().ops.back();
  int number = 0;
  for (const ValueId output : op.outputs)
    if (output != program::kNoValue) builder.output("out" + std::to_string(number++), output);
  (void)result;
  const program::Program program = builder.finish();
  std::vector<torch::Tensor> state, inputs;
  for (const program::State& known : program.state) {
    const auto sizes = program::sizes_of(program.value(known.value), {});
    torch::Tensor values = numbers(sizes, static_cast<int64_t>(state.size()) + 1);
    // A variance is positive.
    state.push_back(known.kind == program::StateKind::buffer ? values.abs() : values);
  }
  for (const program::Port& input : program.inputs) {
    const auto sizes = program::sizes_of(program.value(input.value), {{"batch", 4}});
    inputs.push_back(torch::randint(0, 8, sizes, at::make_generator<at::CPUGeneratorImpl>(5),
                                    torch::TensorOptions(torch::kInt64)));
    if (program.value(input.value).dtype == DType::boolean) inputs.back() = inputs.back().gt(3);
  }
  const auto fresh = [&] {
    std::vector<torch::Tensor> copies;
    for (const torch::Tensor& tensor : state) copies.push_back(tensor.clone());
    return copies;
  };
  ExecutionContext context;
  const Run alone = compute(program, fresh(), inputs, context);
  int count = 0;
  const std::vector<shard::Strategy> list = shard::strategies(
      program, program.ops.back(), {.parts = parts, .blocks = shard::blocks_of(program)});
  for (const shard::Strategy& strategy : list) {
    if (strategy.name == "whole") continue;
    ++count;
    check_strategy(program, alone, fresh(), inputs,
                   {{shard::key_of(program, program.ops.back()), strategy.name}}, parts,
                   fmt::format("{} over {}, {}", test.name, parts, strategy.name));
  }
  return count;
}

Argument to(ValueId value) {
  return Reference{value};
}

List whole_numbers(std::initializer_list<int64_t> list) {
  List result;
  for (const int64_t number : list) result.emplace_back(number);
  return result;
}

// An operation of one float argument, or of two.
Case unary(const char* target, std::vector<int64_t> sizes, std::vector<Size> after,
           std::vector<NamedArgument> more = {}) {
  return {target, [=](Builder& builder) {
            std::vector<NamedArgument> arguments{{"self", to(floats(builder, "x", sizes))}};
            arguments.insert(arguments.end(), more.begin(), more.end());
            return builder.op(target, arguments, {DType::f32, after});
          }};
}
Case binary(const char* target, std::vector<int64_t> a, std::vector<int64_t> b,
            std::vector<Size> after, const char* second = "other") {
  return {target, [=](Builder& builder) {
            return builder.op(
                target,
                {{"self", to(floats(builder, "a", a))}, {second, to(floats(builder, "b", b))}},
                {DType::f32, after});
          }};
}

std::vector<Case> cases(std::mt19937& random) {
  // Multiples of 4, so that 2 and 4 ranks can divide them.
  const auto side = [&] { return int64_t{4} * static_cast<int64_t>(1 + random() % 3); };
  const int64_t n = side(), m = side(), k = side(), r = side();
  std::vector<Case> list{
      {"linear",
       [=](Builder& b) {
         return b.linear(floats(b, "x", {n, r, k}), floats(b, "w", {m, k}), floats(b, "b", {m}));
       }},
      {"linear without bias",
       [=](Builder& b) {
         return b.linear(floats(b, "x", {n, k}), floats(b, "w", {m, k}), program::kNoValue);
       }},
      {"linear then split",
       [=](Builder& b) {
         return b.split(floats(b, "x", {n, 3 * k}), k, 1)[0];
       }},
      {"addmm",
       [=](Builder& b) {
         return b.op("aten.addmm.default",
                     {{"self", to(floats(b, "b", {m}))},
                      {"mat1", to(floats(b, "x", {n, k}))},
                      {"mat2", to(floats(b, "w", {k, m}))}},
                     {DType::f32, {n, m}});
       }},
      binary("aten.matmul.default", {n, k}, {k, m}, {n, m}),
      binary("aten.matmul.default", {r, n, k}, {k, m}, {r, n, m}),
      binary("aten.matmul.default", {r, 1, n, k}, {m, k, n}, {r, m, n, n}),
      binary("aten.bmm.default", {r, n, k}, {r, k, m}, {r, n, m}, "mat2"),
      {"conv2d",
       [=](Builder& b) {
         return b.conv2d(floats(b, "x", {n, k, 5, 5}), floats(b, "w", {m, k, 3, 3}),
                         floats(b, "b", {m}), {.kernel = 3, .padding = 1});
       }},
      {"depthwise convolution",
       [=](Builder& b) {
         return b.op("aten.conv2d.default",
                     {{"input", to(floats(b, "x", {n, k, 5, 5}))},
                      {"weight", to(floats(b, "w", {k, 1, 3, 3}))},
                      {"bias", to(floats(b, "b", {k}))},
                      {"stride", whole_numbers({1, 1})},
                      {"padding", whole_numbers({1, 1})},
                      {"dilation", whole_numbers({1, 1})},
                      {"groups", k}},
                     {DType::f32, {n, k, 5, 5}});
       }},
      {"batch_norm",
       [=](Builder& b) {
         const ValueId x = floats(b, "x", {n, k, 3, 3}), w = floats(b, "w", {k}),
                       s = floats(b, "b", {k});
         const ValueId mean =
             b.buffer("mean", {k}, DType::f32, {.kind = program::Initial::Kind::constant});
         const ValueId variance = b.buffer("variance", {k}, DType::f32,
                                           {.kind = program::Initial::Kind::constant, .a = 1});
         return b.batch_norm(x, w, s, {mean, variance}, 1e-5);
       }},
      {"layer_norm",
       [=](Builder& b) {
         return b.layer_norm(floats(b, "x", {n, r, k}), floats(b, "w", {k}), floats(b, "b", {k}));
       }},
      {"max_pool2d",
       [=](Builder& b) {
         return b.max_pool2d(floats(b, "x", {n, k, 6, 6}), {.kernel = 2, .stride = 2});
       }},
      {"adaptive_avg_pool2d",
       [=](Builder& b) {
         return b.adaptive_avg_pool2d(floats(b, "x", {n, k, 6, 6}), 2);
       }},
      {"embedding",
       [=](Builder& b) {
         return b.embedding(floats(b, "w", {m + 4, k}), indices(b, {n, r}));
       }},
      {"attention",
       [=](Builder& b) {
         return b.attention(floats(b, "q", {n, r, k, 6}), floats(b, "k", {n, r, k, 6}),
                            floats(b, "v", {n, r, k, 6}), {});
       }},
      {"causal attention",
       [=](Builder& b) {
         return b.attention(floats(b, "q", {n, r, k, 6}), floats(b, "k", {n, r, k, 6}),
                            floats(b, "v", {n, r, k, 6}), {.causal = true});
       }},
      {"attention with dropout",
       [=](Builder& b) {
         return b.attention(floats(b, "q", {n, r, k, 6}), floats(b, "k", {n, r, k, 6}),
                            floats(b, "v", {n, r, k, 6}), {.dropout = 0.3, .causal = true});
       }},
      {"attention with a mask",
       [=](Builder& b) {
         return b.op("aten.scaled_dot_product_attention.default",
                     {{"query", to(floats(b, "q", {n, r, k, 6}))},
                      {"key", to(floats(b, "k", {n, r, k, 6}))},
                      {"value", to(floats(b, "v", {n, r, k, 6}))},
                      {"attn_mask", to(floats(b, "mask", {n, 1, k, k}))}},
                     {DType::f32, {n, r, k, 6}});
       }},
      {"attention with dropout, where some see nothing",
       [=](Builder& b) {
         return b.op("aten.scaled_dot_product_attention.default",
                     {{"query", to(floats(b, "q", {n, r, k, 6}))},
                      {"key", to(floats(b, "k", {n, r, k, 6}))},
                      {"value", to(floats(b, "v", {n, r, k, 6}))},
                      {"attn_mask", to(b.input("mask", DType::boolean, {n, 1, k, 1}))},
                      {"dropout_p", 0.3}},
                     {DType::f32, {n, r, k, 6}});
       }},
      {"dropout",
       [=](Builder& b) {
         return b.dropout(floats(b, "x", {n, r, 3 * k}), 0.4);
       }},
      {"cross entropy of rows",
       [=](Builder& b) {
         return b.cross_entropy_loss(floats(b, "x", {r, 8}), indices(b, {r}),
                                     Builder::Reduction::none, 0);
       }},
      {"sum of cross entropy",
       [=](Builder& b) {
         return b.cross_entropy_loss(floats(b, "x", {r, 8}), indices(b, {r}),
                                     Builder::Reduction::sum, 0);
       }},
      {"mean of cross entropy",
       [=](Builder& b) {
         return b.cross_entropy_loss(floats(b, "x", {r, 8}), indices(b, {r}),
                                     Builder::Reduction::mean, 0);
       }},
      {"mse_loss",
       [=](Builder& b) {
         return b.mse_loss(floats(b, "x", {n, k}), floats(b, "t", {n, k}), Builder::Reduction::sum);
       }},
      {"gelu",
       [=](Builder& b) {
         return b.gelu(floats(b, "x", {n, k}));
       }},
      {"sum",
       [=](Builder& b) {
         return b.sum(floats(b, "x", {n, k}));
       }},
      {"sum of a dimension",
       [=](Builder& b) {
         return b.sum(floats(b, "x", {n, r, k}), 1);
       }},
      {"where",
       [=](Builder& b) {
         const ValueId chosen = b.input("chosen", DType::boolean, {n, 1});
         return b.op("aten.where.self",
                     {{"condition", to(chosen)},
                      {"self", to(floats(b, "x", {n, k}))},
                      {"other", to(floats(b, "y", {k}))}},
                     {DType::f32, {n, k}});
       }},
      binary("aten.add.Tensor", {n, r, k}, {r, 1}, {n, r, k}),
      binary("aten.add.Tensor", {n, k}, {n, k}, {n, k}),
      binary("aten.mul.Tensor", {n, k}, {k}, {n, k}),
      unary("aten.mul.Tensor", {n, k}, {n, k}, {{"other", 0.5}}),
      unary("aten.tanh.default", {n, k}, {n, k}),
      unary("aten.mean.dim", {n, r, k}, {n, k}, {{"dim", whole_numbers({1})}}),
      unary("aten.softmax.int", {n, r, k}, {n, r, k}, {{"dim", int64_t{1}}}),
      unary("aten.view.default", {n, r * k}, {n, r, k}, {{"size", whole_numbers({n, r, k})}}),
      unary("aten.view.default", {n, r, k}, {n, r * k}, {{"size", whole_numbers({n, r * k})}}),
      unary("aten.reshape.default", {n, r, 3 * k}, {n * r, 3, k},
            {{"shape", whole_numbers({n * r, 3, k})}}),
      unary("aten.view.default", {n, 3 * r * k}, {n, 3, r, k},
            {{"size", whole_numbers({n, 3, -1, k})}}),
      unary("aten.flatten.using_ints", {n, r, k}, {n, r * k}, {{"start_dim", int64_t{1}}}),
      unary("aten.unsqueeze.default", {n, k}, {n, 1, k}, {{"dim", int64_t{1}}}),
      unary("aten.squeeze.dim", {n, 1, k}, {n, k}, {{"dim", int64_t{1}}}),
      // A rank's part of the first dimension may be of size 1.
      unary("aten.squeeze.default", {4, 1, k}, {4, k}),
      unary("aten.squeeze.dim", {4, k}, {4, k}, {{"dim", int64_t{0}}}),
      unary("aten.transpose.int", {n, r, k}, {k, r, n},
            {{"dim0", int64_t{0}}, {"dim1", int64_t{-1}}}),
      unary("aten.permute.default", {n, r, k}, {r, k, n}, {{"dims", whole_numbers({1, 2, 0})}}),
      unary("aten.expand.default", {n, 1, k}, {m, n, r, k},
            {{"size", whole_numbers({m, -1, r, -1})}}),
      unary("aten.select.int", {n, r, k}, {n, k}, {{"dim", int64_t{1}}, {"index", int64_t{2}}}),
      unary("aten.slice.Tensor", {n, 3 * k}, {n, k},
            {{"dim", int64_t{1}}, {"start", k}, {"end", 2 * k}}),
      unary("aten.slice.Tensor", {n, r, k}, {n, 3, k},
            {{"dim", int64_t{1}}, {"start", int64_t{1}}, {"end", int64_t{4}}}),
      {"cat",
       [=](Builder& b) {
         return b.cat(std::vector{floats(b, "x", {n, k}), floats(b, "y", {n, k})}, 1);
       }},
      {"transposed sum",
       [=](Builder& b) {
         return b.sum(floats(b, "x", {n, k}), 0);
       }},
  };
  return list;
}

TEST(ShardRules, EveryStrategyComputesWhatTheWholeOperationDoes) {
  std::mt19937 random(11);
  for (const int parts : {2, 4}) {
    int strategies = 0;
    for (const Case& test : cases(random)) {
      const int found = check_case(test, parts);
      EXPECT_GT(found, 0) << test.name << " has no strategy over " << parts;
      strategies += found;
    }
    EXPECT_GT(strategies, 100);
  }
}

// As the whole operation does.
TEST(ShardRules, ADividedVocabularyRefusesWhatItDoesNotHave) {
  const auto compute_with = [](const Builder& built, const char* strategy, int64_t index) {
    const program::Program& program = built.program();
    const program::Op& op = program.ops.back();
    const shard::Choice choice{{shard::key_of(program, op), strategy}};
    comm::run_as_threads(2, [&](comm::Transport& transport) {
      comm::Communicator communicator(transport, {});
      const shard::Sharded mine = shard::shard(
          program, {.part = {.parts = 2, .index = transport.rank()}, .choice = choice});
      ExecutionContext context;
      context.tensor = {.communicator = &communicator, .index = transport.rank()};
      compute(mine.program, {part(numbers(mine.state[0].sizes, 1), mine.state[0])},
              {torch::tensor({int64_t{0}, index, int64_t{7}, int64_t{3}})}, context);
    });
  };
  Builder loss("loss"), table("table");
  loss.output("out", loss.cross_entropy_loss(floats(loss, "x", {4, 8}), indices(loss, {4}),
                                             Builder::Reduction::mean, 0));
  table.output("out", table.embedding(floats(table, "w", {8, 4}), indices(table, {4})));
  for (const int64_t there : {0, 4, 7}) EXPECT_NO_THROW(compute_with(loss, "classes", there));
  EXPECT_NO_THROW(compute_with(loss, "classes", -100));
  EXPECT_NO_THROW(compute_with(table, "vocabulary", 5));
  for (const int64_t wrong : {-1, 8, 1000}) {
    EXPECT_THROW(compute_with(loss, "classes", wrong), Error) << wrong;
    EXPECT_ANY_THROW(compute_with(table, "vocabulary", wrong)) << wrong;
  }
}

TEST(ShardRules, AnUnknownOperationIsComputedWhole) {
  Builder builder("unknown");
  const ValueId x = floats(builder, "x", {4, 4});
  builder.output("out",
                 builder.op("aten.fft_fft2.default", {{"self", to(x)}}, {DType::c64, {4, 4}}));
  const program::Program program = builder.finish();
  EXPECT_EQ(shard::strategies(program, program.ops[0], {.parts = 2}).size(), 1u);
}

}  // namespace
}  // namespace renkei::run
