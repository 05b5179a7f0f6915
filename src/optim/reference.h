// The kernels of kernels.h once more, one element at a time: what they are tested against.
#pragma once

#include "optim/kernels.h"

namespace renkei::optim::reference {

void update(Rule rule, const Coefficients& coefficients, const Piece& piece);
Norms norms(Rule rule, const Coefficients& coefficients, const ConstPiece& piece);
SquareSum sum_of_squares(Gradients gradients, size_t count, float gradient_scale = 1);

}  // namespace renkei::optim::reference
