#pragma once

#include "comm/communicator.h"
#include "data/dataset.h"
#include "data/loader/loader.h"
#include "run/execution_context.h"
#include "run/model.h"
#include "run/result.h"

namespace renkei::run {

// Evaluates the network on all samples, divided over the ranks, none twice. All ranks get the
// same result.
Evaluation evaluate(const BoundProgram& network, ExecutionContext& context,
                    const data::Dataset& dataset, comm::Communicator& communicator,
                    int64_t samples_at_once, data::LoaderOptions loader_options,
                    const comm::Call& call);

}  // namespace renkei::run
