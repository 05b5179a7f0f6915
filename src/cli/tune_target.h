// What `renkei tune` knows to measure, and over which settings.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tune/search.h"

namespace renkei::cli {

struct TuneTarget {
  std::string name;
  bool maximise = false;
  std::string unit;
  tune::Space space;
  tune::Point usual;                 // the default settings, as a point; empty: not known
  std::vector<std::string> command;  // with {name} where a value goes
  std::string field;                 // in what the command prints as JSON; empty: its last number
};

struct TuneRequest {
  std::string target;              // "linpack", "collectives", "train" or "" for a command
  std::vector<std::string> words;  // after --: further arguments, or the command
  std::vector<std::string> parameters, constraints;
  bool maximise = false;
  int ranks = 1;
};

TuneTarget make_tune_target(const TuneRequest& request);

// The loss of a point: what the command says, or its negative where more is better.
std::optional<double> measure_target(const TuneTarget& target, const tune::Point& point,
                                     double seconds);

// A TOML file for --config, or a table of values for a command.
std::string best_as_toml(const TuneTarget& target, const tune::Point& point);

}  // namespace renkei::cli
