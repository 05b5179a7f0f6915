#pragma once

#include <string>

#include "data/dataset.h"
#include "data/image/image.h"

namespace renkei::data {

// Labelled RGB images of one size, kept in memory as bytes (a quarter of their size as floats).
// Inputs are {3, height, width}, normalised as (byte / 255 - 0.5) / 0.25.
class MemoryImages : public Dataset {
 public:
  MemoryImages(int64_t count, int height, int width, std::vector<std::string> class_names);

  int64_t count() const override { return static_cast<int64_t>(labels_.size()); }
  std::vector<int64_t> sample_shape() const override { return {3, height_, width_}; }
  int64_t classes() const override { return static_cast<int64_t>(class_names_.size()); }
  void read_input(int64_t sample, std::span<float> input) const override;
  int64_t label(int64_t sample) const override;

  const std::vector<std::string>& class_names() const { return class_names_; }

  // The image must have the right size. Different samples may be set from different threads.
  void set(int64_t sample, const Image& image, int label);

 private:
  size_t image_bytes() const;

  int height_;
  int width_;
  std::vector<std::string> class_names_;
  std::vector<int32_t> labels_;
  std::vector<uint8_t> pixels_;
};

}  // namespace renkei::data
