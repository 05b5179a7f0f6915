#pragma once

#include "comm/choice/cost_model.h"
#include "comm/transport/transport.h"

namespace renkei::comm {

// Measures the links and the reduction in less than 0.5 s (0.3 s of time limits, plus one message
// over a slow link). All ranks call it together and get the same model: rank 0's.
CostModel measure_cost_model(Transport& transport, const Call& call = {});

// A model with the links of another one, or the defaults', for the ranks and hosts of a transport.
CostModel cost_model_for(const Transport& transport, CostModel links = {});

}  // namespace renkei::comm
