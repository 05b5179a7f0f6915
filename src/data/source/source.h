// Samples on storage: what they are, and where their bytes stand. A source is opened once; then
// everything but the bytes themselves is known, so that a loader can plan its reads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/field.h"
#include "data/image/image.h"
#include "data/source/element.h"
#include "data/storage/byte_file.h"

namespace renkei::data {

constexpr int64_t kNoLabel = -1;

// A piece of a file. Sources that can't say where a record stands (compressed HDF5) have file -1,
// and only `read` gets it.
struct Location {
  int64_t file = -1;
  int64_t offset = 0;
  int64_t length = 0;

  bool operator==(const Location&) const = default;
};

// What is stored of every sample under one name. A label is known when the source is open; all else
// is in a record, a piece of a file that is read at once.
constexpr int64_t kNoRecord = -1;

struct StoredField {
  std::string name;                        // "input" and "target", or as the files call it
  std::string origin;                      // for people: "array x_train", "member jpg"
  std::optional<ArrayLayout> layout = {};  // of numbers; empty: an encoded image (JPEG, PNG, .npy)
  int64_t record = 0;                      // kNoRecord: the label
  std::string stored_as = {};              // where a record holds several, how it calls this one

  bool is_label() const { return record == kNoRecord; }
};

// All functions may be called from many threads at once. Whatever is wrong with the data is a data
// Error that names the file, the offset and the sample.
class Source {
 public:
  virtual ~Source() = default;

  virtual std::string_view format() const = 0;  // "image folder", "tar" …
  virtual int64_t count() const = 0;
  virtual const std::vector<StoredField>& fields() const = 0;
  virtual int64_t label(int64_t sample) const = 0;  // kNoLabel where there is none

  virtual int64_t records() const { return 1; }  // of each sample
  virtual Location locate(int64_t sample, int64_t record) const = 0;
  int64_t bytes(int64_t sample) const;  // of all its records

  virtual int64_t files() const = 0;
  virtual std::string file_name(int64_t file) const = 0;
  // Opened before, where a source has few files; opened now, where each sample is one.
  virtual std::shared_ptr<const ByteFile> file(int64_t file) const = 0;

  // The record in the bytes at its location, checked where the format has a checksum.
  virtual std::string_view unwrap(int64_t sample, int64_t record, std::string_view stored) const;
  virtual std::string read(int64_t sample, int64_t record) const;

  // The bytes of a field in its record: an encoded image, or the numbers of its layout. Formats
  // that store numbers in another way put them into `scratch`.
  virtual std::string_view content(int64_t sample, const StoredField& field,
                                   std::string_view record, std::string& scratch) const;

  // How errors call a sample.
  virtual std::string describe(int64_t sample) const;

  virtual std::vector<std::string> class_names() const { return {}; }  // empty: unknown
  int64_t classes() const;  // names, or else the highest label + 1; 0 without labels

  virtual std::optional<ImageExtent> extent(int64_t) const { return {}; }  // of the input

 protected:
  void check_sample(int64_t sample) const;
};

// Null where there is none.
const StoredField* find_field(const Source& source, std::string_view name);

// Of images with labels, or without.
std::vector<StoredField> image_fields(std::string image_origin, std::string label_origin);

}  // namespace renkei::data
