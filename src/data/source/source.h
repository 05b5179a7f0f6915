// Samples on storage: what they are, and where their bytes stand. A source is opened once; then
// everything but the bytes themselves is known, so that a loader can plan its reads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/image/image.h"
#include "data/source/element.h"
#include "data/storage/byte_file.h"

namespace renkei::data {

constexpr int64_t kNoLabel = -1;

// A piece of a file. Sources that can't say where a sample stands (compressed HDF5) have file -1,
// and only `read` gets it.
struct Location {
  int64_t file = -1;
  int64_t offset = 0;
  int64_t length = 0;

  bool operator==(const Location&) const = default;
};

struct Sample {
  std::string bytes;  // an encoded image (JPEG, PNG, .npy), or the numbers of the source's layout
  int64_t label = kNoLabel;
};

// All functions may be called from many threads at once. Whatever is wrong with the data is a data
// Error that names the file, the offset and the sample.
class Source {
 public:
  virtual ~Source() = default;

  virtual std::string_view format() const = 0;  // "image folder", "tar" …
  virtual int64_t count() const = 0;
  virtual int64_t label(int64_t sample) const = 0;  // kNoLabel where there is none
  virtual Location locate(int64_t sample) const = 0;

  virtual int64_t files() const = 0;
  virtual std::string file_name(int64_t file) const = 0;
  // Opened before, where a source has few files; opened now, where each sample is one.
  virtual std::shared_ptr<const ByteFile> file(int64_t file) const = 0;

  // The content in the bytes at a sample's location, checked where the format has a checksum.
  virtual std::string_view unwrap(int64_t sample, std::string_view stored) const;
  virtual Sample read(int64_t sample) const;

  // How errors call a sample.
  virtual std::string describe(int64_t sample) const;

  virtual std::vector<std::string> class_names() const { return {}; }  // empty: unknown
  int64_t classes() const;  // names, or else the highest label + 1; 0 without labels

  // For sources of numbers: what one sample is. Empty: samples are encoded images.
  virtual std::optional<ArrayLayout> layout() const { return {}; }
  virtual std::optional<ImageExtent> extent(int64_t) const { return {}; }

 protected:
  void check_sample(int64_t sample) const;
};

}  // namespace renkei::data
