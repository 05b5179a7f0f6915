#pragma once

#include <vector>

#include "plan/step_model.h"

namespace renkei::test {

using plan::ScheduleKind;
using plan::Shape;

// Every schedule in all sizes that differ: fewer micro-batches than stages, as many, more.
inline std::vector<Shape> all_shapes() {
  std::vector<Shape> shapes;
  for (const int m : {1, 2, 5, 8}) shapes.push_back({ScheduleKind::accumulate, 1, m, 1});
  for (const ScheduleKind kind :
       {ScheduleKind::gpipe, ScheduleKind::one_f_one_b, ScheduleKind::zero_bubble})
    for (const int stages : {1, 2, 3, 4, 7})
      for (const int m : {1, 2, 3, 4, 8, 13}) shapes.push_back({kind, stages, m, 1});
  for (const int groups : {2, 3, 4})
    for (const int chunks : {1, 2, 3})
      for (const int rounds : {1, 2, 3})
        shapes.push_back({ScheduleKind::interleaved, groups * chunks, rounds * groups, chunks});
  return shapes;
}

// A forward and a backward of one second each.
inline std::vector<plan::StageTimes> equal_stages(int stages) {
  return std::vector<plan::StageTimes>(
      static_cast<size_t>(stages), {.forward = 1, .backward_input = 0.5, .backward_weight = 0.5});
}

}  // namespace renkei::test
