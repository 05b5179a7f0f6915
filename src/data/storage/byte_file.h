#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"

namespace renkei::data {

// What storage was asked for, in total; shared by all files that one Storage opened.
struct IoCounters {
  std::atomic<int64_t> opens = 0;
  std::atomic<int64_t> reads = 0;
  std::atomic<int64_t> bytes = 0;
};

// Something whose bytes can be read at any offset, by many threads at once. It is opened once and
// its size does not change.
class ByteFile {
 public:
  ByteFile(std::string name, int64_t size) : name_(std::move(name)), size_(size) {}
  virtual ~ByteFile() = default;
  ByteFile(const ByteFile&) = delete;

  const std::string& name() const { return name_; }
  int64_t size() const { return size_; }

  // Fills `into`, or throws a data Error that names the file and the offset. To read beyond the end
  // is one, too: what the file says about itself is not to be trusted.
  void read(int64_t offset, std::span<char> into) const;
  std::string read(int64_t offset, int64_t length) const;

 protected:
  virtual void read_inside(int64_t offset, std::span<char> into) const = 0;
  void set_size(int64_t size) { size_ = size; }

 private:
  std::string name_;
  int64_t size_;
};

// The data Error of a file whose content makes no sense.
Error damaged(std::string_view file, int64_t offset, std::string_view what);

}  // namespace renkei::data
