#include "model/image_network.h"

#include "base/error.h"

namespace renkei::model {

ImageOptions image_options(const Settings& settings, const ImageDefaults& defaults) {
  ImageOptions options{
      .classes = settings.integer_unless_auto("model.classes").value_or(defaults.classes),
      .image_size = settings.integer_unless_auto("model.image_size").value_or(defaults.image_size),
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

NetworkDescription describe_image_network(
    std::string name, std::string summary, const ImageDefaults& defaults,
    std::function<std::shared_ptr<Network>(const ImageOptions&)> make) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .make = [defaults, make = std::move(make)](const Settings& settings) {
            return make(image_options(settings, defaults));
          }};
}

}  // namespace renkei::model
