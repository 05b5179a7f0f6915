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

struct Coefficients {
  float gradient_scale = 1;
  float decay = 0;
  float keep = 1;
  float rate = 0;
  float momentum = 0;
  float beta1 = 0, one_minus_beta1 = 1;
  float beta2 = 0, one_minus_beta2 = 1;
  float unbias1 = 1, unbias2 = 1;
  float epsilon = 0;
  float sgd_share = 1, rms_share = 0;
};

// One array of gradients per rank, at least one. None of them is written to.
using Gradients = std::span<const float* const>;

// `count` floats of each array; the gradients' start `gradient_offset` floats after the pointers.
// Arrays of states that the rule does not have are null.
template <class Float>
struct PieceOf {
  size_t count = 0;
  Float* values = nullptr;
  Float* first = nullptr;
  Float* second = nullptr;
  Gradients gradients;
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

}  // namespace renkei::optim
