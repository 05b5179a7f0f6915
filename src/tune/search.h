#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "tune/sampler.h"

namespace renkei::tune {

struct SearchOptions {
  SamplerOptions sampler = {};
  int trials = 50;
  double seconds = 1e300;              // begin no trial after this time
  int patience = 0;                    // end after so many trials without a better one; 0: never
  int parallel = 1;                    // trials at the same time
  double give_up_factor = 3;           // of the fastest trial's time; 0: never
  std::vector<Point> first = {};       // to be tried before anything else
  std::filesystem::path journal = {};  // empty: none
  std::string subject = {};            // what the journal says is measured
  std::function<void(const Trial&, const std::vector<Trial>&)> progress = {};
};

// Measures a point: its loss, or nothing when it fails or takes longer than `seconds`. Called from
// several threads when trials are parallel.
using Objective = std::function<std::optional<double>(const Point& point, double seconds)>;

// All trials, in the order of their numbers; those of the journal among them.
std::vector<Trial> search(const Space& space, const Objective& objective,
                          const SearchOptions& options);

const Trial* best_of(const std::vector<Trial>& trials);  // null: none has succeeded

// The share of the variance of the losses that each parameter explains alone (the correlation
// ratio, over at most five bins of its values). Interactions count for nobody.
std::vector<std::pair<std::string, double>> importance(const Space& space,
                                                       const std::vector<Trial>& trials);

}  // namespace renkei::tune
