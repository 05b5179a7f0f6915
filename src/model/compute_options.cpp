#include "model/compute_options.h"

namespace renkei::model {

ComputeOptions& compute_options() {
  static thread_local ComputeOptions options;
  return options;
}

void declare_compute_settings(Settings& settings) {
  const auto declare_switch = [&](const char* name, const char* help) {
    settings.declare(
        {.name = name, .kind = SettingKind::boolean, .default_value = "true", .help = help});
  };
  declare_switch("compute.blocked_layout",
                 "keep images in blocks of 8 channels from layer to layer, with fused kernels");
  declare_switch("compute.winograd", "compute 3 × 3 convolutions by Winograd's method");
  declare_switch("compute.dense",
                 "compute dense layers of few samples with the weights as they lie");
  declare_switch("compute.direct_gradients",
                 "let kernels write gradients directly to where they are reduced");
}

ComputeOptions compute_options(const Settings& settings) {
  return {.blocked_layout = settings.boolean("compute.blocked_layout"),
          .winograd = settings.boolean("compute.winograd"),
          .dense = settings.boolean("compute.dense"),
          .direct_gradients = settings.boolean("compute.direct_gradients")};
}

}  // namespace renkei::model
