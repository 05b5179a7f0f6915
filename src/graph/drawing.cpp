#include "graph/drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/units.h"

namespace renkei::graph {
namespace {

constexpr double kWidth = 170, kHeight = 22, kStepX = 190, kStepY = 38, kMargin = 20;

struct Box {
  std::string text, more;
  int stage = 0, row = 0, column = 0;
  std::set<size_t> from;  // boxes whose values it uses

  double x() const { return kMargin + kStepX * column; }
  double y() const { return kMargin + kStepY * row; }
};

// XML text: names of ops may have any characters.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '"')
      result += "&quot;";
    else if (static_cast<unsigned char>(c) >= 0x20)
      result += c;
  }
  return result;
}

// Neighbouring stages differ well, however many there are.
std::string colour_of(int stage) {
  return fmt::format("hsl({},60%,78%)", stage * 137 % 360);
}

std::vector<Box> boxes_of_ops(const Graph& graph, const std::vector<int>& stage_of_op) {
  std::vector<Box> boxes;
  const auto before = predecessors(graph);
  for (size_t op = 0; op < graph.ops.size(); ++op) {
    const Op& cost = graph.ops[op];
    Box box{.text = cost.name.empty() ? cost.id : cost.name,
            .more = fmt::format("{}, stage {}, forward {:.4g} ms, backward {:.4g} ms, saves {}",
                                cost.kind, stage_of_op[op], 1e3 * cost.forward_seconds,
                                1e3 * cost.backward_seconds, format_size(cost.saved_bytes)),
            .stage = stage_of_op[op]};
    for (const OpIndex earlier : before[op]) {
      box.from.insert(static_cast<size_t>(earlier));
      box.row = std::max(box.row, boxes[static_cast<size_t>(earlier)].row + 1);
    }
    boxes.push_back(std::move(box));
  }
  return boxes;
}

std::vector<Box> boxes_of_stages(const Graph& graph, const std::vector<int>& stage_of_op) {
  const int stages = 1 + *std::ranges::max_element(stage_of_op);
  std::vector<Box> boxes(static_cast<size_t>(stages));
  std::vector<int> counts(boxes.size());
  const auto before = predecessors(graph);
  for (size_t op = 0; op < graph.ops.size(); ++op) {
    const int stage = stage_of_op[op];
    ++counts[static_cast<size_t>(stage)];
    for (const OpIndex earlier : before[op])
      if (const int from = stage_of_op[static_cast<size_t>(earlier)]; from != stage)
        boxes[static_cast<size_t>(stage)].from.insert(static_cast<size_t>(from));
  }
  for (int stage = 0; stage < stages; ++stage) {
    Box& box = boxes[static_cast<size_t>(stage)];
    box.text = fmt::format("stage {}: {} ops", stage, counts[static_cast<size_t>(stage)]);
    box.stage = box.row = stage;
  }
  return boxes;
}

void place_in_columns(std::vector<Box>& boxes) {
  std::vector<int> used;
  for (Box& box : boxes) {
    used.resize(std::max(used.size(), static_cast<size_t>(box.row) + 1));
    box.column = used[static_cast<size_t>(box.row)]++;
  }
}

}  // namespace

std::string svg_drawing(const Graph& graph, const std::vector<int>& stage_of_op,
                        size_t most_boxes) {
  std::vector<Box> boxes = graph.ops.size() <= most_boxes ? boxes_of_ops(graph, stage_of_op)
                                                          : boxes_of_stages(graph, stage_of_op);
  place_in_columns(boxes);
  int rows = 0, columns = 0;
  for (const Box& box : boxes) {
    rows = std::max(rows, box.row + 1);
    columns = std::max(columns, box.column + 1);
  }
  const double width = 2 * kMargin + kStepX * columns, height = 2 * kMargin + kStepY * rows;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 "
      "0 "
      "{0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"10\">\n<title>{2}</title>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      width, height, escaped(graph.name));
  for (const Box& box : boxes)
    for (const size_t index : box.from) {
      const Box& from = boxes[index];
      const bool crosses = from.stage != box.stage;
      svg += fmt::format(
          "<path d=\"M{:.0f} {:.0f} C{:.0f} {:.0f} {:.0f} {:.0f} {:.0f} {:.0f}\" fill=\"none\" "
          "stroke=\"{}\" stroke-width=\"{}\"/>\n",
          from.x() + kWidth / 2, from.y() + kHeight, from.x() + kWidth / 2, from.y() + kStepY,
          box.x() + kWidth / 2, box.y() - kStepY + kHeight, box.x() + kWidth / 2, box.y(),
          crosses ? "#c00" : "#999", crosses ? 2 : 1);
    }
  for (const Box& box : boxes)
    svg += fmt::format(
        "<g><title>{}</title><rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" height=\"{:.0f}\" "
        "rx=\"3\" fill=\"{}\" stroke=\"#555\"/><text x=\"{:.0f}\" y=\"{:.0f}\">{}</text></g>\n",
        escaped(box.more), box.x(), box.y(), kWidth, kHeight, colour_of(box.stage), box.x() + 5,
        box.y() + 15, escaped(box.text.substr(0, 32)));
  return svg + "</svg>\n";
}

}  // namespace renkei::graph
