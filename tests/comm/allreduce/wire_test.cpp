#include "comm/allreduce/wire.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "comm/allreduce.h"
#include "comm/buffer/reference.h"
#include "comm/transport/thread_transport.h"
#include "tests/comm/patterns.h"

namespace renkei::comm {
namespace {

// The bound of wire.h, a percent wider for its terms of higher order and for the sums in f32.
struct Bound {
  double rounding, denormal;
};
Bound bound_of(DType wire) {
  return wire == DType::f16 ? Bound{0x1p-11, 0x1p-39} : Bound{0x1p-8, 0};
}

void check_error(Transport& transport, DType wire, const std::vector<float>& mine,
                 const AllreduceOptions& base, Reduction reduction) {
  const int n = transport.size();
  std::vector<double> exact(mine.begin(), mine.end()), magnitudes = exact;
  for (double& value : magnitudes) value = std::abs(value);
  reference::allreduce(transport, std::span(exact), reduction);
  reference::allreduce(transport, std::span(magnitudes), reduction);
  const double largest =
      magnitudes.empty() ? 0 : *std::max_element(magnitudes.begin(), magnitudes.end());

  std::vector<float> buffer = mine;
  AllreduceOptions options = base;
  options.wire = wire;
  allreduce(transport, std::span(buffer), reduction, {}, options);
  std::vector<float> on_rank_0 = buffer;
  reference::broadcast(transport, std::span(on_rank_0), 0);
  EXPECT_TRUE(same_bits<float>(buffer, on_rank_0)) << name_of(wire);
  const auto [rounding, denormal] = bound_of(wire);
  size_t wrong = 0;
  for (size_t i = 0; i < buffer.size(); ++i) {
    const double allowed = 1.01 * n * (rounding * magnitudes[i] + denormal * largest);
    if (!(std::abs(static_cast<double>(buffer[i]) - exact[i]) <= allowed)) ++wrong;
  }
  EXPECT_EQ(wrong, 0u) << name_of(wire) << ", " << n << " ranks, " << buffer.size() << " elements";
}

TEST(Wire, StaysWithinItsBoundAndGivesTheSameBits) {
  for (const int ranks : {1, 2, 3, 5, 8})
    for (const bool rendezvous : {false, true})
      run_as_threads(
          ranks,
          [](Transport& transport) {
            for (const size_t count : {0, 1, 7, 4099, 12011})
              for (const DType wire : {DType::f16, DType::bf16})
                for (const Reduction reduction : {Reduction::sum, Reduction::mean})
                  for (const Algorithm algorithm : {Algorithm::automatic, Algorithm::ring})
                    check_error(transport, wire, rough_pattern<float>(transport.rank(), count),
                                {.algorithm = algorithm, .segment_bytes = 4000}, reduction);
          },
          {.rendezvous = rendezvous});
}

TEST(Wire, WorksBetweenHosts) {
  for (const std::vector<std::string>& hosts :
       {std::vector<std::string>{"a", "a", "b", "b"}, {"a", "b", "b", "b"}})
    run_as_threads(4,
                   [](Transport& transport) {
                     for (const DType wire : {DType::f16, DType::bf16})
                       check_error(transport, wire, rough_pattern<float>(transport.rank(), 9001),
                                   {.algorithm = Algorithm::hierarchical}, Reduction::mean);
                   },
                   {.hosts = hosts});
}

TEST(Wire, ScalesSegmentsThatF16CouldNotHold) {
  run_as_threads(3, [](Transport& transport) {
    for (const float size : {1e-36f, 1e-20f, 1e-6f, 1e6f, 1e30f}) {
      std::vector<float> values = rough_pattern<float>(transport.rank(), 999);
      for (float& value : values) value *= size * 0x1p-40f;
      check_error(transport, DType::f16, values, {.algorithm = Algorithm::ring}, Reduction::sum);
    }
  });
}

TEST(Wire, IsExactForSmallIntegersAndMaxima) {
  run_as_threads(4, [](Transport& transport) {
    std::vector<float> values(1000);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(static_cast<int>(i % 61) - 30 + transport.rank());
    for (const Reduction reduction : {Reduction::sum, Reduction::max, Reduction::min}) {
      std::vector<float> buffer = values, expected = values;
      allreduce(transport, std::span(buffer), reduction, {}, {.wire = DType::f16});
      reference::allreduce(transport, std::span(expected), reduction);
      EXPECT_EQ(buffer, expected);
    }
  });
}

TEST(Wire, KeepsInfinitiesAndNaNsInTheirPlaces) {
  for (const DType wire : {DType::f16, DType::bf16})
    run_as_threads(3, [&](Transport& transport) {
      std::vector<float> buffer(10, 1);
      if (transport.rank() == 1) {
        buffer[2] = std::numeric_limits<float>::infinity();
        buffer[5] = std::numeric_limits<float>::quiet_NaN();
      }
      allreduce(transport, std::span(buffer), Reduction::sum, {}, {.wire = wire});
      for (size_t i = 0; i < buffer.size(); ++i) {
        if (i == 2)
          EXPECT_EQ(buffer[i], std::numeric_limits<float>::infinity());
        else if (i == 5)
          EXPECT_TRUE(std::isnan(buffer[i]));
        else
          EXPECT_EQ(buffer[i], 3);
      }
    });
}

TEST(Wire, ExponentPutsTheLargestBelowTwoToThe15) {
  for (const float largest : {1.0f, 0.75f, 3e38f, 1e-30f, 65504.0f, 65536.0f}) {
    const std::vector<float> segment = {0, -largest, largest / 3,
                                        -std::numeric_limits<float>::infinity()};
    const double scaled = std::ldexp(static_cast<double>(largest), wire_exponent(segment));
    EXPECT_GE(scaled, 0x1p14);
    EXPECT_LT(scaled, 0x1p15);
  }
  EXPECT_EQ(wire_exponent({}), 0);
  EXPECT_EQ(wire_exponent(std::vector<float>{0, -0.0f}), 0);
  EXPECT_EQ(wire_exponent(std::vector<float>{1e-45f}), 126);
}

TEST(Wire, OtherTypesTravelAsTheyAre) {
  run_as_threads(3, [](Transport& transport) {
    std::vector<double> buffer = rough_pattern<double>(transport.rank(), 50), expected = buffer;
    allreduce(transport, std::span(buffer), Reduction::max, {}, {.wire = DType::f16});
    reference::allreduce(transport, std::span(expected), Reduction::max);
    EXPECT_EQ(buffer, expected);
    EXPECT_THROW(wire_ring_allreduce(transport, std::span(buffer), Reduction::sum, DType::f16, {}),
                 Error);
  });
}

}  // namespace
}  // namespace renkei::comm
