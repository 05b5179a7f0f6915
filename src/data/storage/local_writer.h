#pragma once

#include "data/storage/storage.h"

namespace renkei::data {

// Writes PATH.partial, syncs it and renames it. What was given up is overwritten by the next one.
class LocalWriter : public ByteWriter {
 public:
  explicit LocalWriter(std::string path);
  ~LocalWriter() override;
  LocalWriter(const LocalWriter&) = delete;

  void append(std::string_view bytes) override;
  void finish() override;

 private:
  void flush();

  std::string path_, partial_;
  int descriptor_;
  std::string buffer_;  // small pieces, until they are worth a call
};

}  // namespace renkei::data
