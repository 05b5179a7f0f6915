// What the networks for images have in common: square colour images in, class scores out.
#pragma once

#include <optional>

#include "networks/layers.h"
#include "networks/network.h"

namespace renkei::networks {

struct ImageOptions {
  int64_t classes = 1000;
  int64_t image_size = 224;       // pixels a side
  std::optional<double> dropout;  // empty: the network's own
  bool auxiliary = false;         // with the auxiliary head, where the network has one
};

// What a network does where the settings say "auto", and what it can't do without.
struct ImageDefaults {
  int64_t classes = 1000;
  int64_t image_size = 224;
  int64_t least_image_size = 1;  // smaller images would vanish in the pooling
  std::optional<int64_t> largest_image_size = {};
};

// Reads model.classes, model.image_size, model.dropout and model.auxiliary.
ImageOptions image_options(const Settings& settings, const ImageDefaults& defaults);

// What the layers of a network give.
struct ImageOutputs {
  ValueId main;
  std::optional<ValueId> auxiliary = {};
};
using ImageLayers = std::function<ImageOutputs(Builder&, ValueId images, const ImageOptions&)>;

// A description of a network that is made from ImageOptions.
NetworkDescription describe_image_network(std::string name, std::string summary,
                                          const ImageDefaults& defaults, ImageLayers layers);

// The families, one file each.
std::vector<NetworkDescription> lenet_networks();
std::vector<NetworkDescription> alexnet_networks();
std::vector<NetworkDescription> vgg_networks();
std::vector<NetworkDescription> resnet_networks();
std::vector<NetworkDescription> inception_networks();

}  // namespace renkei::networks
