// A figure as a self-contained SVG: lines with marks over a linear or logarithmic axis.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace renkei::study {

struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points;
};

struct Plot {
  std::string name;  // of its file
  std::string title, x_label, y_label;
  bool logarithmic_x = false;
  std::vector<Curve> curves;
};

std::string svg(const Plot& plot);

}  // namespace renkei::study
