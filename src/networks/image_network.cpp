#include "networks/image_network.h"

#include "base/error.h"

namespace renkei::networks {
namespace {

constexpr double kAuxiliaryWeight = 0.4;  // as Inception's authors train with it

Network build(const std::string& name, const ImageOptions& options, const ImageLayers& layers) {
  Builder builder(name);
  const int64_t side = options.image_size;
  const ValueId images =
      builder.input("input", program::DType::f32, {builder.batch(), 3, side, side});
  const ImageOutputs outputs = layers(builder, images, options);
  builder.output("output", outputs.main);
  if (outputs.auxiliary) builder.output("auxiliary", *outputs.auxiliary);
  return {.training = builder.finish(),
          .outputs = options.classes,
          .random_sample = {.classes = options.classes},
          .auxiliary_weight = outputs.auxiliary ? kAuxiliaryWeight : 0};
}

}  // namespace

ImageOptions image_options(const Settings& settings, const ImageDefaults& defaults) {
  ImageOptions options{
      .classes = settings.integer_unless_auto("model.classes").value_or(defaults.classes),
      .image_size = settings.integer_unless_auto("model.image_size").value_or(defaults.image_size),
      .dropout = {},
      .auxiliary = settings.boolean("model.auxiliary")};
  if (!settings.is_auto("model.dropout")) options.dropout = settings.real("model.dropout");
  const auto refuse = [&](const char* what, int64_t limit) {
    throw Error(ErrorCode::usage,
                fmt::format("{} takes images of at {} {} pixels a side, but model.image_size is {}",
                            settings.text("model.name"), what, limit, options.image_size),
                fmt::format("leave model.image_size at auto ({})", defaults.image_size));
  };
  if (options.image_size < defaults.least_image_size) refuse("least", defaults.least_image_size);
  if (defaults.largest_image_size && options.image_size > *defaults.largest_image_size)
    refuse("most", *defaults.largest_image_size);
  return options;
}

NetworkDescription describe_image_network(std::string name, std::string summary,
                                          const ImageDefaults& defaults, ImageLayers layers) {
  NetworkDescription description{.name = name, .summary = std::move(summary), .make = {}};
  description.make = [name = std::move(name), defaults,
                      layers = std::move(layers)](const Settings& settings) {
    return build(name, image_options(settings, defaults), layers);
  };
  return description;
}

}  // namespace renkei::networks
