// Max-min fair rates: how flows share links, when none can get more without another one, which has
// no more than it, getting less (Bertsekas and Gallager, Data Networks, 6.5.2). Credit-based
// networks such as InfiniBand come close to it.
//
//   repeat   of all links, the one whose capacity divided by its flows is least is full first
//            its flows get that share, and are taken out with the capacity that they use
//
// The result depends on nothing but the flows and their order.
#pragma once

#include <span>
#include <vector>

#include "sim/network.h"

namespace renkei::sim {

class FairShares {
 public:
  explicit FairShares(std::span<const double> capacities)
      : capacities_(capacities), of_link_(capacities.size()) {}

  // The rate of each flow, by the links that it uses (at least one).
  std::vector<double> rates(std::span<const Route> flows);

 private:
  struct OnLink {
    double left = 0;
    int flows = 0;
    std::vector<size_t> users = {};
  };

  std::span<const double> capacities_;
  std::vector<OnLink> of_link_;
};

}  // namespace renkei::sim
