#include "schedule/drawing.h"

#include <gtest/gtest.h>

#include "tests/schedule/shapes.h"

namespace renkei::schedule {
namespace {

using plan::ScheduleKind;
using plan::Shape;

std::string drawing(const Shape& shape, double weight_seconds) {
  std::vector<plan::StageTimes> times(
      static_cast<size_t>(shape.stages),
      {.forward = 1, .backward_input = 1, .backward_weight = weight_seconds});
  return text_drawing(evaluate(make_schedule(shape), shape, times, Record::events));
}

// The tables that stand above the generators.
TEST(Drawing, ShowsGpipe) {
  EXPECT_EQ(drawing({ScheduleKind::gpipe, 3, 4, 1}, 0),
            "0123....abcd\n"
            ".0123..abcd.\n"
            "..0123abcd..\n");
}

TEST(Drawing, ShowsOneFOneB) {
  EXPECT_EQ(drawing({ScheduleKind::one_f_one_b, 3, 4, 1}, 0),
            "012..a3b.c.d\n"
            ".01.a2b3c.d.\n"
            "..0a1b2c3d..\n");
}

TEST(Drawing, ShowsInterleaved) {
  EXPECT_EQ(drawing({ScheduleKind::interleaved, 4, 4, 2}, 0),
            "01012a3b2a3b.c.dcd\n"
            ".010a1b2a3b2c3dcd.\n");
}

TEST(Drawing, ShowsZeroBubble) {
  EXPECT_EQ(drawing({ScheduleKind::zero_bubble, 3, 4, 1}, 1),
            "012..a'3b'c'd'\n"
            ".01.a2b'3c'd''\n"
            "..0a1b2c'3d'''\n");
}

TEST(Drawing, IsCutWhereItIsTooWide) {
  const Shape shape{ScheduleKind::gpipe, 2, 8, 1};
  const auto evaluation =
      evaluate(make_schedule(shape), shape, test::equal_stages(2), Record::events);
  EXPECT_EQ(text_drawing(evaluation, 4), "0123\n.012\n");
}

TEST(Drawing, AsPictureHasARectangleForEachTask) {
  const Shape shape{ScheduleKind::one_f_one_b, 2, 3, 1};
  const std::string svg = svg_drawing(
      evaluate(make_schedule(shape), shape, test::equal_stages(2), Record::events), shape);
  size_t rectangles = 0;
  for (size_t at = svg.find("<rect "); at != std::string::npos; at = svg.find("<rect ", at + 1))
    ++rectangles;
  EXPECT_EQ(rectangles, 1u + 2 * 2 * 3);
  EXPECT_TRUE(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
}

}  // namespace
}  // namespace renkei::schedule
