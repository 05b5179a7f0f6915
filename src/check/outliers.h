// Which of many equal parts is not like the others? The middle is the median and the spread the
// median of the distances from it, so that a bad part cannot hide by moving them. A part is slow
// when it is below the median by more than a share that matters to a job *and* by more than the
// spread of the healthy ones explains:
//
//   slow  =  median - value  >  max(tolerance median, 5 * 1.4826 * spread)
//
// 1.4826 makes the spread that of a normal distribution, of which one in 3 million lies that far.
#pragma once

#include <cstddef>
#include <vector>

namespace renkei::check {

double median(std::vector<double> values);  // 0 for none
double spread(const std::vector<double>& values);

// The places of the slow ones; values are rates: more is better.
std::vector<size_t> slow_ones(const std::vector<double>& values, double tolerance);

}  // namespace renkei::check
