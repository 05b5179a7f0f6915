#include "optim/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/error.h"
#include "tests/optim/random_floats.h"

namespace renkei::optim {
namespace {

// Four parameters on cache lines, the third without decay: 0–100, 112–117, 128–1228, 1232–5232.
const std::vector<Parameter> kParameters = {{0, 100}, {112, 5}, {128, 1100, false}, {1232, 4000}};
constexpr size_t kTotal = 5232;

const std::vector<OptimizerOptions> kOptions = {
    {.kind = OptimizerKind::sgd, .weight_decay = 0.01},
    {.kind = OptimizerKind::sgd, .weight_decay = 0.01, .momentum = 0.9},
    {.kind = OptimizerKind::sgd, .weight_decay = 0.01, .momentum = 0.9, .nesterov = true},
    {.kind = OptimizerKind::adam, .weight_decay = 0.01},
    {.kind = OptimizerKind::adamw, .weight_decay = 0.01},
    {.kind = OptimizerKind::lars, .weight_decay = 0.01, .momentum = 0.9},
    {.kind = OptimizerKind::lamb, .weight_decay = 0.01},
    {.kind = OptimizerKind::rmsprop_warmup, .weight_decay = 0.01, .momentum = 0.9},
};

// Random numbers in the parameters, zeros in the padding.
std::vector<float> flat(uint64_t seed, float size = 1) {
  const std::vector<float> random = random_floats(seed, kTotal, size);
  std::vector<float> result(kTotal);
  for (const Parameter& p : kParameters)
    std::copy_n(random.begin() + static_cast<ptrdiff_t>(p.offset), p.count,
                result.begin() + static_cast<ptrdiff_t>(p.offset));
  return result;
}

Step step_of(int64_t number) {
  return {.number = number,
          .epoch = static_cast<double>(number) * 3,
          .learning_rate = 0.1 / static_cast<double>(number),
          .gradient_scale = 0.5};
}

struct Trained {
  std::vector<float> values;
  std::vector<std::vector<float>> states;
};

// A few steps of two ranks' gradients. Each shard has an optimizer of its own and is updated in
// parts that end at multiples of `part`.
Trained train(const OptimizerOptions& options, const std::vector<size_t>& shard_ends, size_t part) {
  std::vector<Optimizer> optimizers;
  size_t shard_begin = 0;
  for (const size_t end : shard_ends) {
    optimizers.emplace_back(options, kParameters, Range{shard_begin, end});
    shard_begin = end;
  }
  const auto for_parts = [&](const auto& body) {
    for (Optimizer& optimizer : optimizers)
      for (size_t begin = optimizer.shard().begin; begin < optimizer.shard().end;) {
        const size_t end = std::min(optimizer.shard().end, begin / part * part + part);
        body(optimizer, begin, end);
        begin = end;
      }
  };

  Trained result{flat(1), {}};
  for (int64_t number = 1; number <= 5; ++number) {
    const auto seed = static_cast<uint64_t>(number) * 10;
    const std::vector<float> g0 = flat(seed), g1 = flat(seed + 1);
    const Step step = step_of(number);
    std::vector<Norms> norms(optimizers[0].needs_norms() ? kParameters.size() : 0);
    if (!norms.empty())
      for_parts([&](Optimizer& optimizer, size_t begin, size_t end) {
        const float* const gradients[] = {g0.data() + begin, g1.data() + begin};
        optimizer.norms(begin, std::span(result.values).subspan(begin, end - begin), gradients,
                        step, norms);
      });
    for_parts([&](Optimizer& optimizer, size_t begin, size_t end) {
      const float* const gradients[] = {g0.data() + begin, g1.data() + begin};
      optimizer.update(begin, std::span(result.values).subspan(begin, end - begin), gradients, step,
                       norms);
    });
  }
  for (int i = 0; i < optimizers[0].states(); ++i) {
    std::vector<float>& state = result.states.emplace_back();
    for (Optimizer& optimizer : optimizers)
      state.insert(state.end(), optimizer.state(i).begin(), optimizer.state(i).end());
  }
  return result;
}

TEST(Optimizer, GivesTheSameBitsForAnyShardsAndAnyParts) {
  for (const OptimizerOptions& options : kOptions) {
    SCOPED_TRACE(name_of(options.kind));
    const Trained whole = train(options, {kTotal}, kTotal);
    EXPECT_NE(whole.values, flat(1));
    for (const std::vector<size_t>& shards : {std::vector<size_t>{kTotal},
                                              {2616, kTotal},
                                              {1, 105, 3001, kTotal},
                                              {1000, 1000, kTotal}})
      for (const size_t part : {37, 1000, 6000}) {
        const Trained cut = train(options, shards, part);
        EXPECT_EQ(bits_of(cut.values), bits_of(whole.values));
        ASSERT_EQ(cut.states.size(), whole.states.size());
        for (size_t i = 0; i < cut.states.size(); ++i)
          EXPECT_EQ(bits_of(cut.states[i]), bits_of(whole.states[i]));
      }
  }
}

TEST(Optimizer, LeavesThePaddingZero) {
  for (const OptimizerOptions& options : kOptions) {
    const Trained trained = train(options, {kTotal}, kTotal);
    for (size_t i = 0, p = 0; i < kTotal; ++i) {
      if (i >= kParameters[p].offset + kParameters[p].count) ++p;
      if (i < kParameters[p].offset) {
        ASSERT_EQ(trained.values[i], 0) << name_of(options.kind) << ", element " << i;
      }
    }
  }
}

TEST(Optimizer, KeepsStateForItsShardOnly) {
  for (const OptimizerOptions& options : kOptions) {
    const Optimizer optimizer(options, kParameters, {100, 300});
    EXPECT_EQ(optimizer.state_bytes(), static_cast<size_t>(optimizer.states()) * 200 * 4);
  }
  EXPECT_EQ(Optimizer({}, kParameters, {0, kTotal}).state_bytes(), 0u);
}

// With zero gradients all that moves a parameter is its decay.
TEST(Optimizer, DecaysOnlyWhatShallDecay) {
  for (const OptimizerOptions& options : kOptions) {
    SCOPED_TRACE(name_of(options.kind));
    Optimizer optimizer(options, kParameters, {0, kTotal});
    const std::vector<float> before = flat(1), zeros(kTotal);
    std::vector<float> values = before;
    const float* const gradient = zeros.data();
    std::vector<Norms> norms(optimizer.needs_norms() ? kParameters.size() : 0);
    if (!norms.empty()) optimizer.norms(0, values, {&gradient, 1}, step_of(1), norms);
    optimizer.update(0, values, {&gradient, 1}, step_of(1), norms);
    for (const Parameter& p : kParameters)
      EXPECT_EQ(values[p.offset] != before[p.offset], p.decays);
  }
}

// One parameter of norm 5 with a gradient of norm 10, no momentum to hide it.
TEST(Lars, MovesAParameterInProportionToItsNorm) {
  Optimizer optimizer({.kind = OptimizerKind::lars, .weight_decay = 0.1, .trust = 0.02}, {{0, 2}},
                      {0, 2});
  std::vector<float> values{3, 4};
  const std::vector<float> gradients{-6, 8};
  const float* const pointer = gradients.data();
  const Step step{.learning_rate = 0.5};
  std::vector<Norms> norms(1);
  optimizer.norms(0, values, {&pointer, 1}, step, norms);
  EXPECT_EQ(norms[0].values.norm(), 5);
  EXPECT_EQ(norms[0].update.norm(), 10);
  optimizer.update(0, values, {&pointer, 1}, step, norms);
  const double rate = 0.5 * 0.02 * 5 / (10 + 0.1 * 5);
  EXPECT_FLOAT_EQ(values[0], static_cast<float>(3 - rate * (-6 + 0.3)));
  EXPECT_FLOAT_EQ(values[1], static_cast<float>(4 - rate * (8 + 0.4)));
}

TEST(LarsAndLamb, MoveAParameterThatIsZero) {
  for (const OptimizerKind kind : {OptimizerKind::lars, OptimizerKind::lamb}) {
    Optimizer optimizer({.kind = kind}, {{0, 2}}, {0, 2});
    std::vector<float> values{0, 0};
    const std::vector<float> gradients{1, -1};
    const float* const pointer = gradients.data();
    std::vector<Norms> norms(1);
    optimizer.norms(0, values, {&pointer, 1}, {}, norms);
    optimizer.update(0, values, {&pointer, 1}, {}, norms);
    EXPECT_LT(values[0], 0);
    EXPECT_GT(values[1], 0);
  }
}

TEST(Norms, AddUpAsIntegers) {
  Norms a, b;
  a.values.limbs = {1, 2, 3};
  a.update.limbs = {4, 5, 6};
  b.values.limbs = {10, 20, 30};
  b.update.overflows = 1;
  Norms sum = a;
  sum += b;
  Norms both[] = {a, b};
  const std::span<int64_t> integers = as_integers(both);
  ASSERT_EQ(integers.size(), 16u);
  for (size_t i = 0; i < 8; ++i) integers[i] += integers[8 + i];
  EXPECT_EQ(both[0], sum);
  EXPECT_EQ(as_integers(a.values).size(), 4u);
}

TEST(WarmupShare, IsContinuousAndEndsAsPlainSgd) {
  const OptimizerOptions options{.kind = OptimizerKind::rmsprop_warmup};
  EXPECT_NEAR(sgd_share_of_warmup(options, 0), 0.5 * std::exp(-4), 1e-12);
  EXPECT_NEAR(sgd_share_of_warmup(options, 10 - 1e-9), 0.5, 1e-9);
  EXPECT_NEAR(sgd_share_of_warmup(options, 10), 0.5, 1e-12);
  EXPECT_NEAR(sgd_share_of_warmup(options, 11.25), 0.75, 1e-12);
  EXPECT_EQ(sgd_share_of_warmup(options, 12.5), 1);
  EXPECT_EQ(sgd_share_of_warmup(options, 50), 1);
}

TEST(ClipFactor, ShrinksOnlyWhatIsTooLarge) {
  EXPECT_EQ(clip_factor(1, 2), 1);
  EXPECT_EQ(clip_factor(0, 2), 1);
  EXPECT_NEAR(clip_factor(8, 2), 0.25, 1e-7);
}

TEST(Optimizer, RefusesWhatItCannotUpdate) {
  Optimizer optimizer({.kind = OptimizerKind::lamb}, kParameters, {0, 200});
  std::vector<float> values(201);
  const float* const gradient = values.data();
  std::vector<Norms> norms(kParameters.size());
  const std::span<float> shard(values.data(), 200);
  EXPECT_NO_THROW(optimizer.update(0, shard, {&gradient, 1}, {}, norms));
  EXPECT_THROW(optimizer.update(0, values, {&gradient, 1}, {}, norms), Error) << "past the shard";
  EXPECT_THROW(optimizer.update(0, shard, {&gradient, 1}, {}), Error) << "no norms";
  EXPECT_THROW(optimizer.update(0, shard, {}, {}, norms), Error) << "no gradients";
  EXPECT_THROW(Optimizer({.epsilon = 0}, kParameters, {0, 1}), Error);
}

// The values after a few steps.
template <class Number>
std::vector<Number> trained_as(const OptimizerOptions& options) {
  const std::vector<float> first = flat(1);
  std::vector<Number> values(first.begin(), first.end());
  OptimizerOf<Number> optimizer(options, kParameters, {0, kTotal});
  for (int64_t number = 1; number <= 4; ++number) {
    const std::vector<float> drawn = flat(static_cast<uint64_t>(10 + number));
    const std::vector<Number> gradients(drawn.begin(), drawn.end());
    const Number* const source = gradients.data();
    std::vector<Norms> norms(optimizer.needs_norms() ? optimizer.parameters() : 0);
    const GradientsOf<Number> sources(&source, 1);
    if (optimizer.needs_norms()) optimizer.norms(0, values, sources, step_of(number), norms);
    optimizer.update(0, values, sources, step_of(number), norms);
  }
  return values;
}

TEST(Optimizer, ComputesInDoubleWhatItComputesInFloat) {
  for (const OptimizerOptions& options : kOptions) {
    SCOPED_TRACE(name_of(options.kind));
    const std::vector<float> narrow = trained_as<float>(options);
    const std::vector<double> wide = trained_as<double>(options);
    double largest = 0, rounding = 0;
    for (size_t i = 0; i < kTotal; ++i) {
      largest = std::max(largest, std::abs(narrow[i] - wide[i]));
      rounding = std::max(rounding, std::abs(static_cast<float>(wide[i]) - wide[i]));
    }
    EXPECT_LT(largest, 1e-5);
    EXPECT_GT(rounding, 0) << "floats in double's clothes";
  }
}

}  // namespace
}  // namespace renkei::optim
