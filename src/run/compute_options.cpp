#include "run/compute_options.h"

namespace renkei::run {

void declare_compute_settings(Settings& settings) {
  const auto declare_switch = [&](const char* name, const char* help) {
    settings.declare(
        {.name = name, .kind = SettingKind::boolean, .default_value = "true", .help = help});
  };
  declare_switch("compute.winograd", "compute 3 × 3 convolutions by Winograd's method");
  declare_switch("compute.direct_gradients",
                 "let kernels write gradients directly to where they are reduced");
}

ComputeOptions compute_options(const Settings& settings) {
  return {.winograd = settings.boolean("compute.winograd"),
          .dense = settings.boolean("compute.dense"),
          .direct_gradients = settings.boolean("compute.direct_gradients")};
}

}  // namespace renkei::run
