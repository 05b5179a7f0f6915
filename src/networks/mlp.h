// The network of the RaNNC tutorial: `layers` linear layers of width `hidden`, ReLU between them.
// 512 and 10 give 10 × (512² + 512) = 2,626,560 parameters.
#pragma once

#include "networks/network.h"

namespace renkei::networks {

Network make_mlp(int64_t hidden, int64_t layers);

std::vector<NetworkDescription> mlp_networks();

}  // namespace renkei::networks
