#include "study/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace renkei::study {
namespace {

constexpr double kWidth = 640, kHeight = 400, kLeft = 70, kRight = 20, kTop = 40, kBottom = 50;
constexpr const char* kColours[] = {"#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#555"};

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text)
    safe += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return safe;
}

// From numbers to places on the page.
class Scale {
 public:
  explicit Scale(const Plot& plot) : logarithmic_(plot.logarithmic_x) {
    bool first = true;
    for (const Curve& curve : plot.curves)
      for (const auto& [x, y] : curve.points) {
        low_ = first ? at(x) : std::min(low_, at(x));
        high_ = first ? at(x) : std::max(high_, at(x));
        top_ = std::max(top_, y);
        first = false;
      }
    if (high_ == low_) high_ = low_ + 1;
    if (top_ <= 0) top_ = 1;
    const double step = tick_of(top_);
    top_ = std::ceil(top_ / step) * step;
  }
  double x(double value) const {
    return kLeft + (at(value) - low_) / (high_ - low_) * (kWidth - kLeft - kRight);
  }
  double y(double value) const {
    return kHeight - kBottom - value / top_ * (kHeight - kTop - kBottom);
  }
  double top() const { return top_; }
  static double tick_of(double top) {
    const double power = std::pow(10, std::floor(std::log10(top)));
    const double leading = top / power;
    return power * (leading <= 2 ? 0.25 : leading <= 5 ? 0.5 : 1);
  }

 private:
  double at(double value) const { return logarithmic_ ? std::log2(value) : value; }
  bool logarithmic_;
  double low_ = 0, high_ = 0, top_ = 0;
};

std::string axes(const Plot& plot, const Scale& scale) {
  std::string out;
  const double step = Scale::tick_of(scale.top());
  for (double value = 0; value <= scale.top() * 1.0001; value += step)
    out += fmt::format(
        "<line x1='{0}' x2='{1}' y1='{2:.1f}' y2='{2:.1f}' stroke='#ddd'/>"
        "<text x='{3}' y='{4:.1f}' text-anchor='end'>{5:.4g}</text>\n",
        kLeft, kWidth - kRight, scale.y(value), kLeft - 6, scale.y(value) + 4, value);
  std::vector<double> marks;
  for (const Curve& curve : plot.curves)
    for (const auto& point : curve.points) marks.push_back(point.first);
  std::ranges::sort(marks);
  marks.erase(std::unique(marks.begin(), marks.end()), marks.end());
  const size_t each = (marks.size() + 11) / 12;
  for (size_t i = 0; i < marks.size(); i += each)
    out += fmt::format("<text x='{:.1f}' y='{}' text-anchor='middle'>{:.4g}</text>\n",
                       scale.x(marks[i]), kHeight - kBottom + 18, marks[i]);
  out += fmt::format("<text x='{}' y='{}' text-anchor='middle'>{}</text>\n", kWidth / 2,
                     kHeight - 10, escaped(plot.x_label));
  out += fmt::format(
      "<text x='16' y='{0}' text-anchor='middle' transform='rotate(-90 16 {0})'>{1}</text>\n",
      kHeight / 2, escaped(plot.y_label));
  return out;
}

}  // namespace

std::string svg(const Plot& plot) {
  const Scale scale(plot);
  std::string out = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {0} {1}' width='{0}' height='{1}' "
      "font-family='sans-serif' font-size='12'>\n<rect width='{0}' height='{1}' fill='white'/>\n"
      "<text x='{2}' y='20' text-anchor='middle' font-size='14'>{3}</text>\n",
      kWidth, kHeight, kWidth / 2, escaped(plot.title));
  out += axes(plot, scale);
  for (size_t i = 0; i < plot.curves.size(); ++i) {
    const char* colour = kColours[i % std::size(kColours)];
    std::string places;
    for (const auto& [x, y] : plot.curves[i].points)
      places += fmt::format("{:.1f},{:.1f} ", scale.x(x), scale.y(y));
    out += fmt::format("<polyline points='{}' fill='none' stroke='{}' stroke-width='2'/>\n", places,
                       colour);
    if (plot.curves[i].points.size() <= 64)
      for (const auto& [x, y] : plot.curves[i].points)
        out += fmt::format("<circle cx='{:.1f}' cy='{:.1f}' r='3' fill='{}'/>\n", scale.x(x),
                           scale.y(y), colour);
    out +=
        fmt::format("<text x='{}' y='{}' fill='{}'>{}</text>\n", kLeft + 10,
                    kTop + 8 + 16 * static_cast<double>(i), colour, escaped(plot.curves[i].name));
  }
  return out + "</svg>\n";
}

}  // namespace renkei::study
