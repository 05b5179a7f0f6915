// A program of the training mode as one of the evaluation mode, as model.eval() would have it.
#pragma once

#include "program/program.h"

namespace renkei::program {

// Normalisation takes its running statistics, dropout is gone, nothing changes any state. Dropout
// that a model always applies (F.dropout without `training=`) can't be told from a layer's, and
// goes too.
//
// Throws a data Error that names the operation where a rewrite can't tell what evaluation would be:
// numbers drawn otherwise (stochastic depth), or a buffer changed otherwise.
Program evaluation(const Program& training);

}  // namespace renkei::program
