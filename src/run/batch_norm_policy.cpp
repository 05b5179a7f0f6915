#include "run/batch_norm_policy.h"

#include "base/error.h"

namespace renkei::run {

void refuse_single_values() {
  throw Error(
      ErrorCode::usage,
      "batch normalisation needs more than one value of a channel, and a rank has a "
      "micro-batch of one sample",
      "choose a batch that leaves no rank with a single sample in the last step of an epoch "
      "either, or --set train.batch_norm=synchronised");
}

}  // namespace renkei::run
