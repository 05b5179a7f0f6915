#include "schedule/drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace renkei::schedule {
namespace {

char mark_of(const Task& task) {
  if (task.kind == TaskKind::forward) return static_cast<char>('0' + task.micro_batch % 10);
  if (task.kind == TaskKind::backward_weight) return '\'';
  return static_cast<char>('a' + task.micro_batch % 26);
}

double shortest_compute(const Evaluation& evaluation) {
  double shortest = std::numeric_limits<double>::infinity();
  for (const auto& events : evaluation.events)
    for (const Event& event : events)
      if (is_compute(event.task.kind) && event.end > event.begin)
        shortest = std::min(shortest, event.end - event.begin);
  return std::isfinite(shortest) ? shortest : 1;
}

// Forward blue, backward green, the gradient of the parameters lighter; chunks in shades.
std::string colour_of(const Task& task, const plan::Shape& shape) {
  const int chunk = task.stage / shape.groups();
  const int light = 45 + 35 * chunk / std::max(1, shape.chunks);
  switch (task.kind) {
    case TaskKind::forward:
      return fmt::format("hsl(215,65%,{}%)", light);
    case TaskKind::backward_weight:
      return fmt::format("hsl(95,45%,{}%)", light + 15);
    case TaskKind::reduce:
      return "hsl(30,90%,60%)";
    case TaskKind::update:
      return "hsl(0,0%,55%)";
    default:
      return fmt::format("hsl(150,50%,{}%)", light - 5);
  }
}

}  // namespace

std::string text_drawing(const Evaluation& evaluation, size_t columns) {
  const double unit = shortest_compute(evaluation);
  const auto width = static_cast<size_t>(
      std::min(std::ceil(evaluation.seconds / unit - 1e-9), static_cast<double>(columns)));
  std::string text;
  for (const auto& events : evaluation.events) {
    std::string row(width, '.');
    for (const Event& event : events) {
      if (!is_compute(event.task.kind)) continue;
      const auto begin = static_cast<size_t>(std::lround(event.begin / unit));
      const auto end = static_cast<size_t>(std::lround(event.end / unit));
      for (size_t column = begin; column < std::min(end, width); ++column)
        row[column] = mark_of(event.task);
    }
    text += row + "\n";
  }
  return text;
}

std::string svg_drawing(const Evaluation& evaluation, const plan::Shape& shape) {
  constexpr double kWidth = 1200, kRow = 26, kLeft = 70, kTop = 30;
  const double scale = evaluation.seconds > 0 ? kWidth / evaluation.seconds : 0;
  const double height = kTop + kRow * static_cast<double>(evaluation.events.size()) + 30;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" "
      "font-family=\"sans-serif\" font-size=\"11\">\n<title>{} schedule: {} stages, {} "
      "micro-batches</title>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      kLeft + kWidth + 20, height, name_of(shape.kind), shape.stages, shape.micro_batches);
  svg += fmt::format(
      "<text x=\"{}\" y=\"18\">{}, {} micro-batches, {:.4g} ms a step, bubble {:.1f} "
      "%</text>\n",
      kLeft, name_of(shape.kind), shape.micro_batches, 1e3 * evaluation.seconds,
      100 * evaluation.bubble());
  for (size_t group = 0; group < evaluation.events.size(); ++group) {
    const double y = kTop + kRow * static_cast<double>(group);
    svg += fmt::format("<text x=\"4\" y=\"{:.1f}\">group {}</text>\n", y + 16, group);
    for (const Event& event : evaluation.events[group]) {
      const double width = (event.end - event.begin) * scale;
      if (width < 0.05) continue;
      const double x = kLeft + event.begin * scale;
      svg += fmt::format(
          "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.0f}\" fill=\"{}\" "
          "stroke=\"white\" stroke-width=\"0.5\"><title>{} of micro-batch {}, stage {}: {:.4g} "
          "ms</title></rect>\n",
          x, y, width, kRow - 4, colour_of(event.task, shape), name_of(event.task.kind),
          event.task.micro_batch, event.task.stage, 1e3 * (event.end - event.begin));
      if (width > 14 && is_compute(event.task.kind))
        svg += fmt::format(
            "<text x=\"{:.2f}\" y=\"{:.1f}\" text-anchor=\"middle\" "
            "fill=\"white\">{}</text>\n",
            x + width / 2, y + 15, event.task.micro_batch);
    }
  }
  return svg + "</svg>\n";
}

}  // namespace renkei::schedule
