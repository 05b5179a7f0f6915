#pragma once

#include <array>
#include <string>

#include "data/dataset.h"
#include "data/image/image.h"

namespace renkei::data {

// Labelled RGB images of one size, kept in memory as bytes (a quarter of their size as floats).
// Inputs are {3, height, width}.
class MemoryImages : public Dataset {
 public:
  MemoryImages(int64_t count, int height, int width, std::vector<std::string> class_names,
               const Normalisation& normalisation = {});

  int64_t count() const override { return static_cast<int64_t>(labels_.size()); }
  const std::vector<Field>& fields() const override { return fields_; }

  const std::vector<std::string>& class_names() const { return class_names_; }

  // As the program calls them, in place of "input" and "target".
  void name_fields(std::string image, std::string label);

  // The image must have the right size. Different samples may be set from different threads.
  void set(int64_t sample, const Image& image, int label);

 private:
  size_t image_bytes() const;
  void read_fields(int64_t sample, int64_t epoch, std::span<const FieldSpan> into) const override;
  void read_input(int64_t sample, std::span<float> input) const;

  int height_;
  int width_;
  std::vector<std::string> class_names_;
  std::vector<Field> fields_;
  std::array<std::array<float, 256>, 3> normalised_;  // of each byte, in each channel
  std::vector<int32_t> labels_;
  std::vector<uint8_t> pixels_;
};

}  // namespace renkei::data
