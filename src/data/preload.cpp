#include "data/preload.h"

#include "data/image/decode.h"

namespace renkei::data {

MemoryImages preload_images(const Source& source, const PreloadOptions& options) {
  std::vector<std::string> class_names = source.class_names();
  const auto classes = static_cast<size_t>(source.classes());
  while (class_names.size() < classes) class_names.push_back(std::to_string(class_names.size()));
  MemoryImages images(source.count(), options.height, options.width, std::move(class_names),
                      options.normalisation);
  const StoredField& field = *find_field(source, kInput);
  parallel_for(
      images.count(), options.threads,
      [&](int64_t sample) {
        const std::string record = source.read(sample, field.record);
        const std::string name = source.describe(sample);
        std::string scratch;
        const std::string_view bytes = source.content(sample, field, record, scratch);
        const ImageExtent extent = read_image_extent(bytes, name);
        Image image;
        decode_image_region(bytes, name, {0, 0, extent.width, extent.height}, 1, image);
        images.set(sample, resize(image, options.width, options.height),
                   static_cast<int>(source.label(sample)));
      },
      options.progress);
  return images;
}

}  // namespace renkei::data
