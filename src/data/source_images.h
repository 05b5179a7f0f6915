#pragma once

#include <memory>

#include "data/dataset.h"
#include "data/image/transform.h"
#include "data/source/source.h"

namespace renkei::data {

struct SourceImagesOptions {
  TransformOptions transform;  // its height and width are those of an input
  uint64_t seed = 1;           // of crops, mirroring and jitter
};

// Labelled images that stay on storage: each is read and decoded when it is needed. Inputs are
// {3, height, width}. Of an array of bytes (height × width, with 1 or 3 channels first or last)
// each sample is treated as an image; numbers of other types are taken as they are, and must have
// as many of them as an input has.
class SourceImages : public Dataset {
 public:
  // Throws a data Error when the samples have no labels or can't be inputs.
  SourceImages(std::unique_ptr<const Source> source, const SourceImagesOptions& options);

  int64_t count() const override { return source_->count(); }
  std::vector<int64_t> sample_shape() const override;
  int64_t classes() const override { return classes_; }
  int64_t label(int64_t sample) const override { return source_->label(sample); }

  // Epoch 0.
  void read_input(int64_t sample, std::span<float> input) const override;
  void read_augmented(int64_t sample, int64_t epoch, std::span<float> input) const override;
  const Source* source() const override { return source_.get(); }
  void decode(int64_t sample, int64_t epoch, std::string_view bytes,
              std::span<float> input) const override;

 private:
  void check_layout(const ArrayLayout& layout);

  std::unique_ptr<const Source> source_;
  SourceImagesOptions options_;
  int64_t classes_;
  ImageExtent pixels_;  // of a sample of bytes
  int channels_ = 0;    // likewise; 0: the samples are encoded, or numbers
  bool channels_first_ = false;
};

}  // namespace renkei::data
