#include "networks/mlp.h"

#include "networks/layers.h"

namespace renkei::networks {

Network make_mlp(int64_t hidden, int64_t layers) {
  Builder builder("mlp");
  ValueId x = builder.input("input", program::DType::f32, {builder.batch(), hidden});
  for (int64_t i = 0; i < layers; ++i) {
    x = linear(builder, x, "layer" + std::to_string(i), {.out = hidden});
    if (i + 1 < layers) x = builder.relu(x);
  }
  builder.output("output", x);
  return {.training = builder.finish(),
          .outputs = hidden,
          .random_sample = {.target = RandomTarget::numbers, .target_size = hidden}};
}

std::vector<NetworkDescription> mlp_networks() {
  return {{.name = "mlp",
           .summary = "layers × (linear + ReLU), all of width hidden",
           .make = [](const Settings& settings) {
             return make_mlp(settings.integer_unless_auto("model.hidden").value_or(512),
                             settings.integer_unless_auto("model.layers").value_or(10));
           }}};
}

}  // namespace renkei::networks
