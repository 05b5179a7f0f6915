// A cluster that is a little different: what would it be good for?
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cluster/description.h"

namespace renkei::sim {

// "interconnect.bandwidth=2x": a number, or with x a factor on what the description says. All
// kinds of devices and nodes change together. A usage Error for an unknown name (with the nearest),
// and for a value that is no number or not allowed.
void change(cluster::Description& machine, std::string_view assignment);

// What can be changed, and which way is better.
struct Knob {
  std::string name;     // "interconnect.bandwidth"
  std::string meaning;  // "links between nodes"
  bool more_is_better = true;
};
const std::vector<Knob>& knobs();

}  // namespace renkei::sim
