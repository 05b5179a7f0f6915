#pragma once

#include <mutex>

#include <memory>
#include <optional>

#include "data/dataset.h"
#include "data/field_map.h"
#include "data/image/transform.h"
#include "data/source/source.h"

namespace renkei::data {

// What a program takes as an input: an array with as many numbers has this shape.
struct TakenInput {
  std::string name;
  std::vector<int64_t> shape;
};

struct StoredDataOptions {
  TransformOptions transform;           // of images; its height and width are those of the result
  uint64_t seed = 1;                    // of crops, mirroring and jitter
  std::vector<TakenInput> inputs = {};  // others are as they are stored
  FieldMap map = {};                    // how the program calls the fields
};

// Of an array of bytes that is an image.
struct PixelLayout {
  ImageExtent extent;
  int channels = 3;
  bool channels_first = false;
};

// Samples that stay on storage: fields are read and decoded when they are needed, and only those
// that are. Encoded images become {3, height, width} of f32, all images of a sample with the same
// crop. So does an input of bytes (height × width, with 1 or 3 channels first or last) where the
// program takes an image, or nothing is known of it. All other numbers keep their type and shape.
class StoredData : public Dataset {
 public:
  // Throws a data Error when an input has another number of elements than the program takes.
  StoredData(std::unique_ptr<const Source> source, const StoredDataOptions& options);

  int64_t count() const override { return source_->count(); }
  const std::vector<Field>& fields() const override { return fields_; }
  const Source* source() const override { return source_.get(); }
  std::vector<int64_t> records_of(std::span<const size_t> fields) const override;

 private:
  // How a field is made of what is stored.
  struct Recipe {
    const StoredField* stored = nullptr;
    std::optional<PixelLayout> pixels = {};
  };

  void add_field(const StoredField& stored, const std::string& name);
  void add_numbers(const StoredField& stored, Field& field, Recipe& recipe) const;
  void read_fields(int64_t sample, int64_t epoch, std::span<const FieldSpan> into) const override;
  void decode_fields(int64_t sample, int64_t epoch, std::span<const Record> records,
                     std::span<const FieldSpan> into) const override;
  void decode_field(const Recipe& recipe, int64_t sample, const Random& random,
                    std::string_view record, std::span<std::byte> into) const;

  // So that images are decoded into memory that is already there: as many pieces as threads have
  // decoded at once.
  class SpareScratch {
   public:
    std::unique_ptr<TransformScratch> take();
    void give_back(std::unique_ptr<TransformScratch> piece);

   private:
    std::mutex mutex_;
    std::vector<std::unique_ptr<TransformScratch>> pieces_;
  };

  mutable SpareScratch scratch_;
  std::unique_ptr<const Source> source_;
  StoredDataOptions options_;
  std::vector<Field> fields_;
  std::vector<Recipe> recipes_;  // of the fields
};

}  // namespace renkei::data
