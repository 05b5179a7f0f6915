// The arithmetic of the optimizers on contiguous floats, vectorised with Highway and chosen for the
// processor at run time. Every operation is rounded to float by itself, in the order in which it is
// written below, so that all instruction sets, all cuts into pieces and the plain loops of
// reference.h give the same bits.
//
// θ is the value, s₁ and s₂ the state, and
//
//   g = ((g₀ + g₁) + g₂ …) gradient_scale
//
// the sum of the gradients of the ranks, in rank order as comm adds them: the update may be part of
// the reduction, in one pass over memory.
//
//   sgd        d = g + decay θ                                              θ ← θ - rate d
//   momentum   d as above, s₁ ← momentum s₁ + d                             θ ← θ - rate s₁
//   nesterov   d, s₁ as above                                               θ ← θ - rate (d +
//   momentum s₁) adam       d as above, s₁ ← beta1 s₁ + (1-beta1) d, s₂ ← beta2 s₂ + (1-beta2) d²
//              θ ← keep θ - rate (s₁ / (√s₂ unbias2 + epsilon))
//   lars       d as above, s₁ ← momentum s₁ + rate d                        θ ← θ - s₁
//   lamb       s₁, s₂ as in adam with d = g
//              r = (s₁ unbias1) / (√s₂ unbias2 + epsilon) + decay θ         θ ← θ - rate r
//   rmsprop_warmup   d as above, s₂ ← beta2 s₂ + (1-beta2) d²
//              s₁ ← momentum s₁ - (sgd_share + rms_share / (√s₂ + epsilon)) d   θ ← θ + rate s₁
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

#include "optim/square_sum.h"

namespace renkei::optim {

enum class Rule { sgd, momentum, nesterov, adam, lars, lamb, rmsprop_warmup };

constexpr int states_of(Rule rule) {
  switch (rule) {
    case Rule::sgd:
      return 0;
    case Rule::momentum:
    case Rule::nesterov:
    case Rule::lars:
      return 1;
    case Rule::adam:
    case Rule::lamb:
    case Rule::rmsprop_warmup:
      return 2;
  }
  return 0;
}

template <class Number>
struct CoefficientsOf {
  Number gradient_scale = 1;
  Number decay = 0;
  Number keep = 1;
  Number rate = 0;
  Number momentum = 0;
  Number beta1 = 0, one_minus_beta1 = 1;
  Number beta2 = 0, one_minus_beta2 = 1;
  Number unbias1 = 1, unbias2 = 1;
  Number epsilon = 0;
  Number sgd_share = 1, rms_share = 0;
};
using Coefficients = CoefficientsOf<float>;

// One array of gradients per rank, at least one. None of them is written to.
template <class Number>
using GradientsOf = std::span<const Number* const>;
using Gradients = GradientsOf<float>;

// `count` numbers of each array; the gradients' start `gradient_offset` after the pointers. Arrays
// of states that the rule does not have are null.
template <class Number>
struct PieceOf {
  size_t count = 0;
  Number* values = nullptr;
  Number* first = nullptr;
  Number* second = nullptr;
  GradientsOf<std::remove_const_t<Number>> gradients;
  size_t gradient_offset = 0;
};
using Piece = PieceOf<float>;
using ConstPiece = PieceOf<const float>;

void update(Rule rule, const Coefficients& coefficients, const Piece& piece);

// What the rate of a parameter tensor depends on: Σ θ², and Σ g² for LARS, Σ r² for LAMB.
struct Norms {
  SquareSum values;
  SquareSum update;

  Norms& operator+=(const Norms& other);
  bool operator==(const Norms&) const = default;
};

// Reads the state and leaves it as it is.
Norms norms(Rule rule, const Coefficients& coefficients, const ConstPiece& piece);

// Σ g² of `count` elements.
SquareSum sum_of_squares(Gradients gradients, size_t count, float gradient_scale = 1);

// The same for networks in f64, by plain loops.
void update(Rule rule, const CoefficientsOf<double>& coefficients, const PieceOf<double>& piece);
Norms norms(Rule rule, const CoefficientsOf<double>& coefficients,
            const PieceOf<const double>& piece);
SquareSum sum_of_squares(GradientsOf<double> gradients, size_t count, double gradient_scale = 1);

}  // namespace renkei::optim
