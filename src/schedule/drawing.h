#pragma once

#include <string>

#include "schedule/evaluate.h"

namespace renkei::schedule {

// A schedule in text: a row for each group, a column for each unit of time (as long as the shortest
// task), forward as a digit, backward as a letter, the gradient of the parameters as ', waiting as
// a dot. Wide drawings are cut at `columns`.
std::string text_drawing(const Evaluation& evaluation, size_t columns = 160);

// The same as a picture, to scale.
std::string svg_drawing(const Evaluation& evaluation, const plan::Shape& shape);

}  // namespace renkei::schedule
