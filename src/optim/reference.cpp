#include "optim/reference.h"

#include "optim/plain.h"

namespace renkei::optim::reference {

void update(Rule rule, const Coefficients& coefficients, const Piece& piece) {
  plain::update(rule, coefficients, piece);
}

Norms norms(Rule rule, const Coefficients& coefficients, const ConstPiece& piece) {
  return plain::norms(rule, coefficients, piece);
}

SquareSum sum_of_squares(Gradients gradients, size_t count, float gradient_scale) {
  return plain::sum_of_squares(gradients, count, gradient_scale);
}

}  // namespace renkei::optim::reference
