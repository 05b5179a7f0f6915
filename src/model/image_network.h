// What the networks for images have in common: square colour images in, class scores out.
#pragma once

#include <optional>

#include "model/network.h"

namespace renkei::model {

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

class ImageNetwork : public Network {
 public:
  explicit ImageNetwork(const ImageOptions& options)
      : image_size_(options.image_size), classes_(options.classes) {}

  std::vector<int64_t> input_shape() const override { return {3, image_size_, image_size_}; }
  int64_t outputs() const override { return classes_; }

 private:
  int64_t image_size_, classes_;
};

// A description of a network that is made from ImageOptions.
NetworkDescription describe_image_network(
    std::string name, std::string summary, const ImageDefaults& defaults,
    std::function<std::shared_ptr<Network>(const ImageOptions&)> make);

}  // namespace renkei::model
