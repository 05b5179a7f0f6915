// Softmax cross entropy of rows of logits, for large vocabularies: loss = log Σ eˣ - x[target].
//
// The forward direction reads the logits once, in pieces with a running maximum, and keeps only
// log Σ eˣ of each row. The backward direction makes softmax(x) - [target] from it, in place of the
// logits if wished: probabilities are never stored beside them.
#pragma once

#include "compute/rows.h"

namespace renkei::compute {

// Rows with this target have no loss and no gradient: PyTorch's default.
inline constexpr int64_t kIgnoredTarget = -100;

// An Error where a target is not a column.
void check_targets(const RowShape& shape, const int64_t* targets, int64_t ignored = kIgnoredTarget);

// `loss` and `log_sum` get a value for each row. Checks the targets.
void cross_entropy_forward(const RowShape& shape, const float* logits, const int64_t* targets,
                           float* loss, float* log_sum, int64_t ignored = kIgnoredTarget);

// `loss_gradient` has a value for each row: that of the mean over n rows is 1/n everywhere.
// `gradient` may be `logits`.
void cross_entropy_backward(const RowShape& shape, const float* logits, const int64_t* targets,
                            const float* log_sum, const float* loss_gradient, float* gradient,
                            int64_t ignored = kIgnoredTarget);

}  // namespace renkei::compute
