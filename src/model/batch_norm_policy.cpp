#include "model/batch_norm_policy.h"

namespace renkei::model {

BatchNormPolicy& batch_norm_policy() {
  static thread_local BatchNormPolicy policy;
  return policy;
}

}  // namespace renkei::model
