#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "data/storage/sequential_reader.h"

namespace renkei::data {

struct TarMember {
  std::string name;
  int64_t offset = 0;  // of its data
  int64_t size = 0;
};

// Walks over the regular files of a tar archive: the formats of POSIX 1988 (ustar) and 2001 (pax),
// of GNU tar and of Unix version 7. Reads headers only. An archive without the two empty blocks at
// its end is accepted, one that ends within a member is not.
class TarReader {
 public:
  explicit TarReader(const ByteFile& file) : reader_(file) {}

  std::optional<TarMember> next();

 private:
  // What the headers before a member's own said about it.
  struct Overrides {
    std::optional<std::string> name;
    std::optional<int64_t> size;
  };

  std::string read_extra(int64_t size);
  void read_pax(int64_t size, Overrides& into);
  Error broken(std::string_view what) const;

  SequentialReader reader_;
  int64_t header_offset_ = 0;
  Overrides global_;  // of pax headers for all members that follow
};

// "a/b.seg.png" is component "seg.png" of sample "a/b". Empty where a name has no dot after its
// first letter: such members belong to no sample.
struct TarName {
  std::string_view key;
  std::string_view extension;
};
std::optional<TarName> split_tar_name(std::string_view name);

// The header before a member: 512 bytes, and a pax header before them for a name of more than 100.
std::string make_tar_header(std::string_view name, int64_t size);
// The zeros that follow its data.
constexpr int64_t tar_padding(int64_t size) {
  return (512 - size % 512) % 512;
}

}  // namespace renkei::data
