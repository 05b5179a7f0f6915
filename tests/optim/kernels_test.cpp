#include "optim/kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "comm/buffer/reduce.h"
#include "optim/reference.h"
#include "tests/optim/instruction_sets.h"
#include "tests/optim/random_floats.h"

namespace renkei::optim {
namespace {

constexpr Rule kRules[] = {Rule::sgd,  Rule::momentum, Rule::nesterov,      Rule::adam,
                           Rule::lars, Rule::lamb,     Rule::rmsprop_warmup};

// No coefficient is 0 or 1, so that none can be forgotten.
constexpr Coefficients kCoefficients{.gradient_scale = 0.3f,
                                     .decay = 0.02f,
                                     .keep = 0.97f,
                                     .rate = 0.05f,
                                     .momentum = 0.8f,
                                     .beta1 = 0.9f,
                                     .one_minus_beta1 = 0.1f,
                                     .beta2 = 0.99f,
                                     .one_minus_beta2 = 0.01f,
                                     .unbias1 = 1.7f,
                                     .unbias2 = 1.3f,
                                     .epsilon = 1e-3f,
                                     .sgd_share = 0.6f,
                                     .rms_share = 0.2f};

// Arrays with room before and behind, which must stay as it is.
struct Arrays {
  size_t offset, count;
  std::vector<float> values, first, second;
  std::vector<std::vector<float>> gradients;

  Arrays(size_t offset, size_t count, size_t sources) : offset(offset), count(count) {
    const size_t total = offset + count + 3;
    values = random_floats(1, total);
    first = random_floats(2, total);
    second = random_floats(3, total);
    for (float& x : second) x *= x;
    for (size_t s = 0; s < sources; ++s) gradients.push_back(random_floats(10 + s, total));
  }

  std::vector<const float*> pointers() const {
    std::vector<const float*> result;
    for (const auto& gradient : gradients) result.push_back(gradient.data());
    return result;
  }

  Piece piece(const std::vector<const float*>& pointers) {
    return {count, values.data() + offset, first.data() + offset, second.data() + offset, pointers,
            offset};
  }
  ConstPiece const_piece(const std::vector<const float*>& pointers) const {
    return {count, values.data() + offset, first.data() + offset, second.data() + offset, pointers,
            offset};
  }
};

void expect_same_bits(const Arrays& actual, const Arrays& expected) {
  EXPECT_EQ(bits_of(actual.values), bits_of(expected.values));
  EXPECT_EQ(bits_of(actual.first), bits_of(expected.first));
  EXPECT_EQ(bits_of(actual.second), bits_of(expected.second));
}

TEST(Update, GivesTheBitsOfThePlainLoopForAnyRuleSizePlaceAndInstructionSet) {
  for_every_instruction_set([] {
    for (const Rule rule : kRules)
      for (const size_t count : {0, 1, 3, 7, 15, 16, 17, 31, 64, 129, 1000})
        for (const size_t offset : {0, 1, 5})
          for (const size_t sources : {1, 2, 3, 5}) {
            Arrays actual(offset, count, sources), expected(offset, count, sources);
            const auto mine = actual.pointers(), others = expected.pointers();
            update(rule, kCoefficients, actual.piece(mine));
            reference::update(rule, kCoefficients, expected.piece(others));
            expect_same_bits(actual, expected);
            ASSERT_FALSE(testing::Test::HasFailure())
                << "rule " << static_cast<int>(rule) << ", count " << count << ", offset " << offset
                << ", sources " << sources;
          }
  });
}

TEST(Update, AddsGradientsAsTheReductionDoes) {
  for (const Rule rule : kRules)
    for (const size_t sources : {2, 3, 4, 8}) {
      Arrays fused(0, 1003, sources), apart(0, 1003, sources);
      const auto pointers = fused.pointers();
      Coefficients mean = kCoefficients;
      mean.gradient_scale = static_cast<float>(1.0 / static_cast<double>(sources));
      update(rule, mean, fused.piece(pointers));

      std::vector<const std::byte*> bytes;
      for (const auto& gradient : apart.gradients)
        bytes.push_back(reinterpret_cast<const std::byte*>(gradient.data()));
      std::vector<float> reduced(apart.values.size());
      comm::reduce_many(comm::Buffer(std::span(reduced)), bytes, comm::Reduction::mean);
      mean.gradient_scale = 1;
      update(rule, mean, apart.piece({reduced.data()}));
      expect_same_bits(fused, apart);
    }
}

TEST(Update, LeavesZerosZero) {
  for (const Rule rule : kRules) {
    std::vector<float> values(100), first(100), second(100), gradient(100);
    const float* const pointer = gradient.data();
    update(rule, kCoefficients,
           {100, values.data(), first.data(), second.data(), {&pointer, 1}, 0});
    EXPECT_EQ(values, std::vector<float>(100));
    EXPECT_EQ(first, std::vector<float>(100));
    EXPECT_EQ(second, std::vector<float>(100));
  }
}

TEST(Update, WithoutAGradientIsABug) {
  float value = 0;
  EXPECT_THROW(update(Rule::sgd, {}, {1, &value, nullptr, nullptr, {}, 0}), Error);
}

TEST(NormsOfAPiece, EqualThePlainSumsForAnySizePlaceAndInstructionSet) {
  for_every_instruction_set([] {
    for (const Rule rule : {Rule::lars, Rule::lamb})
      for (const size_t count : {0, 1, 3, 7, 16, 129, 4096, 10001})
        for (const size_t offset : {0, 1, 5})
          for (const size_t sources : {1, 2, 3}) {
            const Arrays arrays(offset, count, sources);
            const auto pointers = arrays.pointers();
            const Norms actual = norms(rule, kCoefficients, arrays.const_piece(pointers));
            EXPECT_EQ(actual, reference::norms(rule, kCoefficients, arrays.const_piece(pointers)));
          }
  });
}

TEST(NormsOfAPiece, AreABugForRulesWithoutThem) {
  const Arrays arrays(0, 10, 1);
  const auto pointers = arrays.pointers();
  EXPECT_THROW(norms(Rule::adam, kCoefficients, arrays.const_piece(pointers)), Error);
}

// From numbers that hardly count to ones that are near the limit.
std::vector<float> rough_floats(size_t count) {
  std::vector<float> numbers = random_floats(7, count);
  for (size_t i = 0; i < count; ++i)
    numbers[i] = std::ldexp(numbers[i], static_cast<int>(i * 7 % 64) - 46);
  return numbers;
}

TEST(SumOfSquares, EqualsThePlainSumForAnyCutAndInstructionSet) {
  const std::vector<float> numbers = rough_floats(20011);
  const float* const all = numbers.data();
  const SquareSum expected = reference::sum_of_squares({&all, 1}, numbers.size(), 0.7f);
  EXPECT_TRUE(expected.finite());
  for_every_instruction_set([&] {
    EXPECT_EQ(sum_of_squares({&all, 1}, numbers.size(), 0.7f), expected);
    for (const size_t first_cut : {1, 17, 4095, 4096, 10000}) {
      SquareSum sum;
      for (size_t begin = 0, end = first_cut; begin < numbers.size();) {
        const float* const part = numbers.data() + begin;
        sum += sum_of_squares({&part, 1}, end - begin, 0.7f);
        begin = end;
        end = std::min(numbers.size(), end + first_cut * 3 / 2 + 1);
      }
      EXPECT_EQ(sum, expected);
    }
  });
}

TEST(SumOfSquares, AddsTheGradientsOfTheRanksFirst) {
  const std::vector<float> a = random_floats(1, 5000), b = random_floats(2, 5000);
  const float* const sources[] = {a.data(), b.data(), a.data()};
  for_every_instruction_set([&] {
    EXPECT_EQ(sum_of_squares(sources, 5000, 0.5f), reference::sum_of_squares(sources, 5000, 0.5f));
  });
}

TEST(SumOfSquares, IsInfiniteWhereANumberIsNotFiniteOrTooLarge) {
  for_every_instruction_set([] {
    for (const float bad : {std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN(), 1e9f, -1e30f})
      for (const size_t place : {0, 4999, 9999}) {
        std::vector<float> numbers = random_floats(1, 10000);
        numbers[place] = bad;
        const float* const pointer = numbers.data();
        const SquareSum sum = sum_of_squares({&pointer, 1}, numbers.size());
        EXPECT_FALSE(sum.finite());
        EXPECT_TRUE(std::isinf(sum.value()));
      }
  });
}

}  // namespace
}  // namespace renkei::optim
