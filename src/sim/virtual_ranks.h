// Many ranks in one thread, each a fiber that goes on until it has to wait, over a network that is
// only described. Collectives run as they are; what carries their messages decides how long they
// take, and that is what the levels of detail differ in:
//
//   rounds   messages that do not depend on each other are a round; a link is busy for as long as
//            the bytes of a round take that cross it, a round lasts as long as its slowest message
//   flows    each message begins when both ends are ready and shares links with the others that are
//            under way (fair_shares.h); ranks may begin at different times
//
// Messages have no content, so use buffers without data. The same input gives the same bits.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "comm/transport/transport.h"
#include "sim/network.h"

namespace renkei::sim {

// What a rank does; the transport also lets it wait until a time.
class VirtualRank : public comm::Transport {
 public:
  virtual void wait_until(double seconds) = 0;  // with flows only
};
using RankBody = std::function<void(VirtualRank&)>;

// How long it takes, from all ranks' common beginning to the end of the last.
double seconds_in_rounds(const Network& network, const RankBody& body);

// When each rank ends.
std::vector<double> ends_with_flows(const Network& network, const RankBody& body);

}  // namespace renkei::sim
