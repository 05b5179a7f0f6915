#include "model/capture.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "graph/cuts.h"
#include "graph/graph_json.h"
#include "model/blank.h"
#include "model/program.h"
#include "model/random_ops.h"

namespace renkei::model {
namespace {

constexpr RandomKey kKey{.seed = 3, .step = 5, .micro_batch = 1};

// Small networks with every construct: batch normalisation, dropout, skips, branches, an auxiliary
// head, tied weights, whole numbers as inputs.
std::shared_ptr<Network> make(const std::string& name) {
  Settings settings;
  declare_settings(settings);
  settings.set("model.name", name, "test");
  const auto set = [&](const std::string& key, const std::string& value) {
    settings.set("model." + key, value, "test");
  };
  if (name == "mlp") set("hidden", "24");
  if (name == "alexnet") set("image_size", "63");
  if (name == "vgg11_bn") set("image_size", "32");
  if (name == "resnet18") set("image_size", "40");
  if (name == "inception_v3") {
    set("image_size", "299");
    set("auxiliary", "true");
  }
  if (name == "gpt" || name == "bert")
    for (const auto& [key, value] : std::map<std::string, std::string>{{"hidden", "16"},
                                                                       {"layers", "2"},
                                                                       {"heads", "4"},
                                                                       {"sequence", "6"},
                                                                       {"vocabulary", "11"},
                                                                       {"dropout", "0.2"}})
      set(key, value);
  return make_network(settings, 1);
}

struct Sample {
  torch::Tensor input, target;
};

Sample batch_for(const Network& network, int64_t samples) {
  torch::manual_seed(7);
  std::vector<int64_t> shape = network.input_shape();
  shape.insert(shape.begin(), samples);
  const RandomSample sample = network.random_sample();
  if (sample.target == RandomTarget::next_token || sample.target == RandomTarget::masked_token)
    return {torch::randint(sample.classes, shape),
            torch::randint(sample.classes, {samples, sample.target_size})};
  return {torch::randn(shape), torch::randint(network.outputs(), {samples})};
}

Traced loss_of(Network& network) {
  return [&network](const torch::Tensor& input, const torch::Tensor& target) {
    const Network::Outputs outputs = network.forward_all(input);
    torch::Tensor loss = torch::cross_entropy_loss(outputs.main, target);
    for (const torch::Tensor& auxiliary : outputs.auxiliary)
      loss = loss + outputs.auxiliary_weight * torch::cross_entropy_loss(auxiliary, target);
    return std::vector<torch::Tensor>{loss};
  };
}

// Loss, gradients of the parameters, and buffers afterwards.
std::vector<torch::Tensor> results(Network& network, const torch::Tensor& loss) {
  std::vector<torch::Tensor> all{loss.detach().clone()};
  for (torch::Tensor& parameter : network.parameters()) {
    all.push_back(parameter.grad().defined() ? parameter.grad().clone() : torch::Tensor());
    parameter.mutable_grad().reset();
  }
  for (const torch::Tensor& buffer : network.buffers()) all.push_back(buffer.clone());
  return all;
}

// Runs a captured network in as many parts, as different ranks would: gradients pass from part to
// part through the values only.
torch::Tensor run_in_parts(const Capture& capture, const Sample& batch, size_t parts) {
  const graph::Graph& graph = capture.graph;
  const size_t count = graph.ops.size();
  std::vector<torch::Tensor> values(graph.values.size());
  for (const int input : graph.inputs)
    values[static_cast<size_t>(input)] =
        graph.values[static_cast<size_t>(input)].name == "input" ? batch.input : batch.target;
  struct Ran {
    std::vector<int> inputs, outputs;
    std::vector<torch::Tensor> leaves, results;
  };
  std::vector<Ran> ran;
  const KeyedRandom random(kKey);
  for (size_t p = 0; p < parts; ++p) {
    std::vector<int> ops, outputs;
    for (size_t op = count * p / parts; op < count * (p + 1) / parts; ++op) {
      ops.push_back(static_cast<int>(op));
      for (const int output : graph.ops[op].outputs) outputs.push_back(output);
    }
    const Program program(capture, ops, outputs);
    Ran part{.inputs = program.inputs(), .outputs = program.outputs()};
    std::vector<torch::Tensor> inner, parameters;
    for (const int input : part.inputs) {
      const auto i = static_cast<size_t>(input);
      torch::Tensor leaf = values[i].detach();
      leaf.requires_grad_(graph.values[i].gradient);
      part.leaves.push_back(leaf);
      // Through a node of its own, so that gradients are added up as in one process.
      inner.push_back(graph.values[i].gradient ? leaf.view_as(leaf) : leaf);
    }
    for (const int parameter : program.parameters())
      parameters.push_back(capture.parameters[static_cast<size_t>(parameter)]);
    part.results = program.run(inner, parameters);
    for (size_t i = 0; i < part.outputs.size(); ++i)
      values[static_cast<size_t>(part.outputs[i])] = part.results[i];
    ran.push_back(std::move(part));
  }
  std::vector<torch::Tensor> gradients(graph.values.size());
  const auto loss = static_cast<size_t>(graph.outputs[0]);
  gradients[loss] = torch::ones_like(values[loss]);
  for (size_t p = parts; p-- > 0;) {
    std::vector<torch::Tensor> roots, seeds;
    for (size_t i = 0; i < ran[p].outputs.size(); ++i) {
      const auto value = static_cast<size_t>(ran[p].outputs[i]);
      if (!gradients[value].defined() || !ran[p].results[i].requires_grad()) continue;
      roots.push_back(ran[p].results[i]);
      seeds.push_back(gradients[value]);
    }
    if (!roots.empty()) torch::autograd::backward(roots, seeds);
    for (size_t i = 0; i < ran[p].inputs.size(); ++i) {
      torch::Tensor& gradient = gradients[static_cast<size_t>(ran[p].inputs[i])];
      const torch::Tensor& mine = ran[p].leaves[i].grad();
      if (mine.defined()) gradient = gradient.defined() ? gradient + mine : mine;
    }
  }
  return values[loss];
}

class Captures : public testing::TestWithParam<const char*> {};

TEST_P(Captures, ComputeTheSameBitsInOnePartAndInSeveral) {
  const auto network = make(GetParam());
  network->train();
  const bool large = std::string(GetParam()) == "inception_v3";
  const Sample batch = batch_for(*network, large ? 2 : 3);
  const Capture captured =
      capture(*network, loss_of(*network), batch.input, batch.target, GetParam());
  std::vector<torch::Tensor> buffers;
  for (const torch::Tensor& buffer : network->buffers()) buffers.push_back(buffer.clone());
  const auto restore_buffers = [&] {
    const torch::NoGradGuard no_gradients;
    auto now = network->buffers();
    for (size_t i = 0; i < now.size(); ++i) now[i].copy_(buffers[i]);
  };

  torch::Tensor loss;
  {
    const KeyedRandom random(kKey);
    loss = loss_of(*network)(batch.input, batch.target)[0];
  }
  loss.backward();
  const auto expected = results(*network, loss);
  for (const size_t parts : large ? std::vector<size_t>{3} : std::vector<size_t>{1, 2, 5}) {
    restore_buffers();
    const auto got = results(*network, run_in_parts(captured, batch, parts));
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i].defined(), expected[i].defined()) << i;
      if (!got[i].defined()) continue;
      // Values with several users in one part add up in another order.
      const double most = expected[i].abs().max().item<double>();
      EXPECT_LE((got[i] - expected[i]).abs().max().item<double>(), (parts > 1 ? 1e-6 : 0) * most)
          << "tensor " << i << " in " << parts << " parts";
    }
  }
}

class SmallCaptures : public Captures {};

TEST_P(SmallCaptures, KnowTheBatch) {
  const auto network = make(GetParam());
  const Sample two = batch_for(*network, 2), three = batch_for(*network, 3);
  Capture captured = capture(*network, loss_of(*network), two.input, two.target, GetParam());
  const Capture other = capture(*network, loss_of(*network), three.input, three.target, GetParam());
  find_batch_dimensions(captured, other);
  for (const graph::Value& value : captured.graph.values)
    EXPECT_EQ(value.batch, !value.shape.empty()) << value.id << " " << GetParam();
}

TEST_P(Captures, HaveTheSameGraphWithoutValues) {
  const auto graph_of = [](const std::function<Sample(const Network&)>& batch_of) {
    const auto network = make(GetParam());
    const Sample batch = batch_of(*network);
    return to_json(
        capture(*network, loss_of(*network), batch.input, batch.target, GetParam()).graph);
  };
  const auto expected = graph_of([](const Network& network) { return batch_for(network, 2); });
  const BlankTensors blank;
  const auto got = graph_of([](const Network& network) {
    const Sample values = batch_for(network, 2);
    return Sample{values.input.to(torch::kMeta), values.target.to(torch::kMeta)};
  });
  EXPECT_EQ(nlohmann::json::diff(expected, got).dump(), "[]");
}

INSTANTIATE_TEST_SUITE_P(OfNetworks, Captures,
                         testing::Values("mlp", "lenet", "alexnet", "vgg11_bn", "resnet18",
                                         "inception_v3", "gpt", "bert"));
INSTANTIATE_TEST_SUITE_P(OfNetworks, SmallCaptures,
                         testing::Values("mlp", "lenet", "resnet18", "gpt", "bert"));

TEST(Capture, LeavesTheRunningStatisticsAlone) {
  const auto network = make("resnet18");
  const Sample batch = batch_for(*network, 2);
  const std::vector<torch::Tensor> before = network->buffers();
  std::vector<torch::Tensor> copies;
  for (const torch::Tensor& buffer : before) copies.push_back(buffer.clone());
  capture(*network, loss_of(*network), batch.input, batch.target, "resnet18");
  for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(torch::equal(before[i], copies[i]));
}

TEST(Capture, OfATiedWeightHasOneParameter) {
  const auto network = make("gpt");
  const Sample batch = batch_for(*network, 2);
  const Capture captured = capture(*network, loss_of(*network), batch.input, batch.target, "gpt");
  int users = 0;
  for (const graph::Op& op : captured.graph.ops)
    for (const int parameter : op.parameters)
      users += captured.graph.parameters[static_cast<size_t>(parameter)].name == "tokens.weight";
  EXPECT_EQ(users, 2);
}

TEST(BlankTensors, HaveNoMemory) {
  const BlankTensors blank;
  const torch::Tensor tensor = torch::empty({1 << 20, 1 << 20});  // 4 TiB
  EXPECT_TRUE(tensor.is_meta());
  EXPECT_EQ(torch::matmul(tensor, tensor).sizes(), tensor.sizes());
  EXPECT_TRUE(torch::ones({2}, torch::kCPU).add(torch::ones({2})).is_meta());
  EXPECT_EQ(torch::ones({2}, torch::kCPU).sum().item<float>(), 2);
}

TEST(BlankTensors, GiveTheShapesThatComputingGives) {
  // The last two have no shape function in Torch: they are computed on zeros.
  const std::vector<std::function<torch::Tensor(const torch::Tensor&, const torch::Tensor&)>> ops{
      [](const auto& x, const auto& w) { return torch::conv2d(x, w, {}, 2, 1, 2); },
      [](const auto& x, const auto& w) { return torch::conv_transpose2d(x, w, {}, 2, 1, 1); },
      [](const auto& x, const auto&) {
        return std::get<1>(torch::native_layer_norm(x, {17, 11}, {}, {}, 1e-5));
      },
      [](const auto& x, const auto&) {
        return std::get<1>(torch::native_batch_norm(x, {}, {}, {}, {}, true, 0.1, 1e-5));
      },
      [](const auto& x, const auto&) {
        return torch::conv1d(x.select(3, 0), torch::ones({5, 6, 3}));
      },
      [](const auto& x, const auto&) {
        return std::get<0>(torch::adaptive_max_pool2d(x, {3, 3}));
      },
      [](const auto& x, const auto&) {
        return torch::grid_sampler(x, x.slice(1, 0, 2).permute({0, 2, 3, 1}), 0, 0, true);
      },
      [](const auto& x, const auto&) {
        return x.clone().put_(torch::zeros({1}, torch::kInt64), torch::zeros({1}));
      }};
  for (size_t i = 0; i < ops.size(); ++i) {
    const auto shape = [&] {
      return ops[i](torch::zeros({3, 6, 17, 11}), torch::zeros({6, 6, 3, 3})).sizes().vec();
    };
    const std::vector<int64_t> expected = shape();
    const BlankTensors blank;
    EXPECT_EQ(shape(), expected) << i;
  }
}

}  // namespace
}  // namespace renkei::model
