#include "run/compute_options.h"

namespace renkei::run {

ComputeOptions compute_options(const Settings& settings) {
  return {.winograd = settings.boolean("compute.winograd"),
          .dense = settings.boolean("compute.dense"),
          .products = settings.boolean("compute.products"),
          .direct_gradients = settings.boolean("compute.direct_gradients")};
}

}  // namespace renkei::run
