#include "data/source/synth_source.h"

#include <algorithm>

#include "data/image/jpeg.h"
#include "data/shapes.h"

namespace renkei::data {
namespace {

class SynthSource : public Source {
 public:
  explicit SynthSource(const SynthSourceOptions& options) : options_(options) {
    if (options_.images > 0) typical_bytes_ = static_cast<int64_t>(read(0, 0).size());
  }

  std::string_view format() const override { return "drawn shapes"; }
  int64_t count() const override { return options_.images; }
  const std::vector<StoredField>& fields() const override { return fields_; }
  int64_t files() const override { return 0; }
  std::vector<std::string> class_names() const override { return shape_names(); }
  std::string describe(int64_t sample) const override {
    return fmt::format("the drawn image {}", options_.first + sample);
  }
  int64_t label(int64_t sample) const override {
    check_sample(sample);
    return (options_.first + sample) % static_cast<int64_t>(shape_names().size());
  }
  // Nowhere, and about this long.
  Location locate(int64_t sample, int64_t) const override {
    check_sample(sample);
    return {.length = typical_bytes_};
  }
  std::string file_name(int64_t) const override { return "drawn shapes"; }
  std::shared_ptr<const ByteFile> file(int64_t) const override {
    throw Error(ErrorCode::bug, "drawn images are in no file");
  }

  std::string read(int64_t sample, int64_t) const override {
    check_sample(sample);
    const int side = std::max(options_.width, options_.height);
    Image image = draw_shape(options_.seed, options_.first + sample, side).image;
    if (options_.width != options_.height) image = crop(image);
    return encode_jpeg(image, options_.quality);
  }

 private:
  // The middle of a square, as photos are rarely square.
  Image crop(const Image& square) const {
    const int left = (square.width - options_.width) / 2,
              top = (square.height - options_.height) / 2;
    Image part{options_.width, options_.height, 3, {}};
    for (int y = 0; y < part.height; ++y) {
      const auto row = square.pixels.begin() + ((top + y) * square.width + left) * 3;
      part.pixels.insert(part.pixels.end(), row, row + part.width * 3);
    }
    return part;
  }

  SynthSourceOptions options_;
  int64_t typical_bytes_ = 0;
  std::vector<StoredField> fields_ = image_fields("drawn image", "drawn shape");
};

}  // namespace

std::unique_ptr<Source> make_synth_source(const SynthSourceOptions& options) {
  return std::make_unique<SynthSource>(options);
}

}  // namespace renkei::data
