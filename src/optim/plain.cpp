#include "optim/plain.h"

#include "base/error.h"

namespace renkei::optim {
namespace {

void check_gradients_of_f64(GradientsOf<double> gradients) {
  if (gradients.empty()) throw Error(ErrorCode::bug, "an update without a gradient");
}

}  // namespace

void update(Rule rule, const CoefficientsOf<double>& coefficients, const PieceOf<double>& piece) {
  check_gradients_of_f64(piece.gradients);
  plain::update(rule, coefficients, piece);
}

Norms norms(Rule rule, const CoefficientsOf<double>& coefficients,
            const PieceOf<const double>& piece) {
  check_gradients_of_f64(piece.gradients);
  return plain::norms(rule, coefficients, piece);
}

SquareSum sum_of_squares(GradientsOf<double> gradients, size_t count, double gradient_scale) {
  check_gradients_of_f64(gradients);
  return plain::sum_of_squares(gradients, count, gradient_scale);
}

}  // namespace renkei::optim
