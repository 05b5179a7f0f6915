#include "networks/network.h"

#include <algorithm>

#include "base/error.h"
#include "networks/image_network.h"
#include "networks/mlp.h"
#include "networks/transformer.h"

namespace renkei::networks {

const std::vector<NetworkDescription>& networks() {
  static const std::vector<NetworkDescription> list = [] {
    std::vector<NetworkDescription> all;
    for (const auto& family : {mlp_networks(), lenet_networks(), alexnet_networks(), vgg_networks(),
                               resnet_networks(), inception_networks(), transformer_networks()})
      all.insert(all.end(), family.begin(), family.end());
    return all;
  }();
  return list;
}

Network make_network(const Settings& settings) {
  const std::string& name = settings.text("model.name");
  const auto found = std::ranges::find(networks(), name, &NetworkDescription::name);
  if (found == networks().end())
    throw Error(ErrorCode::usage, fmt::format("there is no built-in network {}", name),
                "renkei model list shows them");
  return found->make(settings);
}

int64_t count_parameters(const program::Program& program) {
  int64_t count = 0;
  for (const program::State& state : program.state) {
    if (state.kind != program::StateKind::parameter) continue;
    int64_t elements = 1;
    for (const program::Size& size : program.value(state.value).sizes) elements *= size.number();
    count += elements;
  }
  return count;
}

}  // namespace renkei::networks
