// What comes out by itself.
#include "shard/solve.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "networks/loss.h"
#include "networks/mlp.h"
#include "networks/network.h"
#include "networks/settings.h"
#include "program/work.h"
#include "shard/shard.h"

namespace renkei::shard {
namespace {

program::Program training_of(const std::string& name,
                             const std::map<std::string, std::string>& values, int64_t target) {
  Settings settings;
  networks::declare_settings(settings);
  settings.set("model.name", name, "test");
  for (const auto& [key, value] : values) settings.set("model." + key, value, "test");
  return networks::training_program(
      networks::make_network(settings).training,
      {.objective =
           name == "mlp" ? networks::Objective::regression : networks::Objective::classification,
       .target = {.label = target == 0, .size = target}});
}

program::Program transformer(const std::string& name, int64_t layers) {
  return training_of(name,
                     {{"hidden", "1024"},
                      {"heads", "16"},
                      {"layers", std::to_string(layers)},
                      {"sequence", "512"},
                      {"vocabulary", "32000"},
                      {"dropout", "0.1"}},
                     512);
}

struct Halves {
  int forward = 0, backward = 0;
};
// Of what is as large as the values between layers, or larger.
Halves exchanges(const program::Program& program, const SolveOptions& options) {
  const Sharded sharded = shard(program, {.part = {.parts = options.parts},
                                          .choice = solve(program, options).choice,
                                          .pins = options.pins});
  Halves halves;
  const auto symbols = with_batch(sharded.program, 4);
  for (const program::Op& op : sharded.program.ops) {
    const program::Work work = work_of(sharded.program, op, symbols);
    const auto count = [](const program::Work::Exchange& exchange) {
      return exchange.bytes >= exchange.halves * 4.0 * 512 * 1024 * 4 ? exchange.halves : 0;
    };
    halves.forward += count(work.exchange_forward);
    halves.backward += count(work.exchange_backward);
  }
  return halves;
}

// Parameters divided wherever they can be.
SolveOptions memory_dear(int parts) {
  return {.parts = parts, .batch = false, .costs = {.samples = 4, .seconds_per_state_byte = 1e-9}};
}

TEST(Solve, TransformersExchangeNoMoreThanMegatron) {
  // Two allreduces forward and two back for each layer, or their halves.
  for (const char* name : {"gpt", "bert"})
    for (const int parts : {2, 4, 8}) {
      const Halves few = exchanges(transformer(name, 2), memory_dear(parts));
      const Halves more = exchanges(transformer(name, 6), memory_dear(parts));
      EXPECT_LE((more.forward - few.forward) / 4.0, 4) << name << " over " << parts;
      EXPECT_LE((more.backward - few.backward) / 4.0, 4) << name << " over " << parts;
    }
}

TEST(Solve, TransformersHaveTheirParametersInParts) {
  for (const char* name : {"gpt", "bert"}) {
    const program::Program program = transformer(name, 2);
    const SolveOptions options = memory_dear(4);
    const Sharded sharded =
        shard(program, {.part = {.parts = 4}, .choice = solve(program, options).choice});
    int64_t all = 0, mine = 0;
    for (size_t i = 0; i < sharded.state.size(); ++i) {
      all += program::bytes_of(program.value(program.state[i].value), {});
      mine += program::bytes_of(sharded.program.value(sharded.program.state[i].value), {});
    }
    EXPECT_LT(static_cast<double>(mine), 0.26 * static_cast<double>(all)) << name;
  }
}

TEST(Solve, TwoLayersOfAPerceptronAreColumnsThenRows) {
  const program::Program program = training_of("mlp", {{"hidden", "4096"}, {"layers", "2"}}, 4096);
  const Choice choice = solve(program, memory_dear(2)).choice;
  std::vector<std::string> ways;
  for (const program::Op& op : program.ops)
    if (op.target == "aten.linear.default") ways.push_back(choice.at(key_of(program, op)));
  EXPECT_EQ(ways, (std::vector<std::string>{"column", "row"}));
}

TEST(Solve, DenseLayersOfVggAreDividedAndItsFirstConvolutionsBySamples) {
  const program::Program program =
      training_of("vgg16", {{"image_size", "224"}, {"classes", "1000"}}, 0);
  // Slow links: 1 Gbit/s.
  const SolveOptions options{.parts = 2,
                             .costs = {.flops_per_second = 1e11,
                                       .bytes_per_second = 1e10,
                                       .allreduce_latency_seconds = 2e-4,
                                       .allreduce_seconds_per_byte = 8e-9,
                                       .samples = 16}};
  const Sharded sharded =
      shard(program, {.part = {.parts = 2}, .choice = solve(program, options).choice});
  EXPECT_TRUE(sharded.divides_batch);
  for (size_t i = 0; i < sharded.state.size(); ++i) {
    const program::State& state = program.state[i];
    const auto sizes = program::sizes_of(program.value(state.value), {});
    if (sizes.size() == 2 && sizes[1] > 4000) {
      EXPECT_TRUE(sharded.state[i].is_split()) << state.name;
    }
    // Later ones have more weights than their images have values.
    if (sizes.size() == 4 && sizes[1] < 512) {
      EXPECT_TRUE(sharded.state[i].is_summed()) << state.name;
    }
  }
}

TEST(Solve, WhatIsPinnedLiesAsItWasAsked) {
  const program::Program program = training_of("mlp", {{"hidden", "64"}, {"layers", "3"}}, 64);
  SolveOptions options = memory_dear(2);
  options.pins = parse_pins("layer0.weight:1=model,layer1.*=none");
  const Sharded sharded =
      shard(program,
            {.part = {.parts = 2}, .choice = solve(program, options).choice, .pins = options.pins});
  for (size_t i = 0; i < sharded.state.size(); ++i) {
    const std::string& name = program.state[i].name;
    if (name == "layer0.weight") {
      EXPECT_EQ(sharded.state[i].layout, split(1));
    }
    if (name.starts_with("layer1.")) {
      EXPECT_EQ(sharded.state[i].layout, kWhole);
    }
  }
  options.pins = parse_pins("layer0.weight:2=model");
  EXPECT_THROW(solve(program, options), Error);
  options.pins = parse_pins("no.such:0=model");
  EXPECT_THROW(solve(program, options), Error);
}

TEST(Solve, FewStatesAreEnoughForAChain) {
  const program::Program program = training_of("mlp", {{"hidden", "256"}, {"layers", "3"}}, 256);
  SolveOptions options{.parts = 2, .batch = false, .costs = {.samples = 8}};
  const Solution best = solve(program, options);
  EXPECT_TRUE(best.exact);
  options.most_states = 1 << 20;
  EXPECT_EQ(solve(program, options).seconds, best.seconds);
}

}  // namespace
}  // namespace renkei::shard
