// The densities of the tree-structured Parzen estimator (Bergstra, Bardenet, Bengio, Kegl, 2011).
//
// n observed points x_1 … x_n with d coordinates become a mixture of n + 1 components: one around
// each, and one prior that covers the whole space. In coordinate j, on the interval [a_j, b_j],
//
//   number    component i is a normal around x_ij with deviation s_ij, cut off at the interval and
//             normalised; the prior has the middle and the width of the interval
//   integer   the same on [a - 1/2, b + 1/2], as the probability of [x - 1/2, x + 1/2]
//   choice    component i has x_ij with weight 1 + 1/(n + 1) and each other with 1/(n + 1), over
//             their sum; the prior has all alike
//
// Logarithmic numbers are logarithms first, an integer's cell is then [log(x-1/2), log(x+1/2)].
// s_ij is the larger distance of x_ij from its neighbours among the points, in coordinate j (at the
// ends, from the only one; of a single point, from the farther end of the interval), but at least
// (b_j - a_j) / min(100, n + 2). Components multiply over coordinates, so points keep what belongs
// together. The newest 25 points and the prior weigh 1; the n - 25 older ones weigh from 1/n to 1,
// in even steps.
#pragma once

#include <vector>

#include "tune/random.h"
#include "tune/space.h"

namespace renkei::tune {

class ParzenEstimator {
 public:
  // Each point has a value for each parameter; the newest come last.
  ParzenEstimator(std::vector<const Parameter*> parameters, const std::vector<Point>& points);

  double log_density(const Point& point) const;
  Point sample(Random& random) const;

 private:
  struct Axis {
    const Parameter* parameter;
    double low, high;                // of the interval, in logarithms where those count
    std::vector<double> sigmas;      // of the components of points
    std::vector<double> centers;     // of the points
    std::vector<double> log_masses;  // of the normals inside the interval; the last is the prior's
  };
  double log_component(const Axis& axis, size_t i, double value) const;

  size_t points_;
  std::vector<double> log_weights_;  // of the components, normalised
  std::vector<Axis> axes_;
};

}  // namespace renkei::tune
