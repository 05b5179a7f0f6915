// The arithmetic of kernels.h one element at a time: what the kernels for f32 are tested against,
// and what f64 is computed with.
#pragma once

#include <cmath>

#include "optim/kernels.h"

namespace renkei::optim::plain {

template <class Number>
Number summed(GradientsOf<Number> gradients, size_t i, Number scale) {
  Number sum = gradients[0][i];
  for (size_t s = 1; s < gradients.size(); ++s) sum += gradients[s][i];
  return sum * scale;
}

// The averages of Adam and LAMB.
template <class Number>
void average(const CoefficientsOf<Number>& c, Number d, Number& first, Number& second) {
  first = c.beta1 * first + c.one_minus_beta1 * d;
  second = c.beta2 * second + c.one_minus_beta2 * (d * d);
}

template <class Number>
Number lamb_direction(const CoefficientsOf<Number>& c, Number value, Number first, Number second) {
  const Number root = std::sqrt(second) * c.unbias2 + c.epsilon;
  return first * c.unbias1 / root + c.decay * value;
}

template <class Number>
void update_element(Rule rule, const CoefficientsOf<Number>& c, Number g, Number& value,
                    Number& first, Number& second) {
  const Number d = g + c.decay * value;
  switch (rule) {
    case Rule::sgd:
      value -= c.rate * d;
      return;
    case Rule::momentum:
      first = c.momentum * first + d;
      value -= c.rate * first;
      return;
    case Rule::nesterov:
      first = c.momentum * first + d;
      value -= c.rate * (c.momentum * first + d);
      return;
    case Rule::adam:
      average(c, d, first, second);
      value = c.keep * value - c.rate * (first / (std::sqrt(second) * c.unbias2 + c.epsilon));
      return;
    case Rule::lars:
      first = c.momentum * first + c.rate * d;
      value -= first;
      return;
    case Rule::lamb:
      average(c, g, first, second);
      value -= c.rate * lamb_direction(c, value, first, second);
      return;
    case Rule::rmsprop_warmup:
      second = c.beta2 * second + c.one_minus_beta2 * (d * d);
      first =
          c.momentum * first - (c.sgd_share + c.rms_share / (std::sqrt(second) + c.epsilon)) * d;
      value += c.rate * first;
      return;
  }
}

// In 128-bit whole numbers of 2^-76: other arithmetic than the kernels'. It has room for sums up to
// 2^50.
class PlainSum {
 public:
  void add(double x) {
    const double square = x * x;
    if (!(square < 0x1p50))
      overflows_ = 1;
    else
      sum_ += static_cast<__int128>(std::nearbyint(std::ldexp(square, 76)));
  }
  SquareSum result() const {
    SquareSum result{.overflows = overflows_};
    if (overflows_ > 0) return result;
    constexpr __int128 kMask = (__int128{1} << SquareSum::kLimbBits) - 1;
    result.limbs = {static_cast<int64_t>(sum_ >> 80), static_cast<int64_t>(sum_ >> 40 & kMask),
                    static_cast<int64_t>(sum_ & kMask)};
    return result;
  }

 private:
  __int128 sum_ = 0;
  int64_t overflows_ = 0;
};

template <class Number>
void update(Rule rule, const CoefficientsOf<Number>& coefficients, const PieceOf<Number>& piece) {
  for (size_t i = 0; i < piece.count; ++i) {
    const Number g =
        summed<Number>(piece.gradients, piece.gradient_offset + i, coefficients.gradient_scale);
    Number first = piece.first ? piece.first[i] : 0;
    Number second = piece.second ? piece.second[i] : 0;
    update_element(rule, coefficients, g, piece.values[i], first, second);
    if (piece.first) piece.first[i] = first;
    if (piece.second) piece.second[i] = second;
  }
}

template <class Number>
Norms norms(Rule rule, const CoefficientsOf<Number>& coefficients,
            const PieceOf<const Number>& piece) {
  PlainSum values, directions;
  for (size_t i = 0; i < piece.count; ++i) {
    const Number g =
        summed<Number>(piece.gradients, piece.gradient_offset + i, coefficients.gradient_scale);
    values.add(piece.values[i]);
    if (rule == Rule::lamb) {
      Number first = piece.first[i], second = piece.second[i];
      average(coefficients, g, first, second);
      directions.add(lamb_direction(coefficients, piece.values[i], first, second));
    } else {
      directions.add(g);
    }
  }
  return {values.result(), directions.result()};
}

template <class Number>
SquareSum sum_of_squares(GradientsOf<Number> gradients, size_t count, Number gradient_scale) {
  PlainSum sum;
  for (size_t i = 0; i < count; ++i) sum.add(summed<Number>(gradients, i, gradient_scale));
  return sum.result();
}

}  // namespace renkei::optim::plain
