#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/storage/byte_file.h"

namespace renkei::data {

struct ZipMember {
  std::string name;
  int64_t size = 0;         // of the content
  int64_t stored_size = 0;  // in the archive
  int64_t offset = 0;       // of the stored bytes
  bool deflated = false;
  uint32_t crc32 = 0;
};

// The members of a zip archive (also of more than 4 GiB), as npz files are. Encrypted members and
// other compressions than deflate are data Errors.
std::vector<ZipMember> read_zip_directory(const ByteFile& file);

// The content of a deflated member, as a file that can be read at any offset: it is unpacked once
// into a temporary file without a name. The checksum is compared.
std::shared_ptr<const ByteFile> unpack_zip_member(const ByteFile& file, const ZipMember& member);

// The same, unpacked when it is first read: an array that nobody uses costs nothing.
std::shared_ptr<const ByteFile> open_zip_member(std::shared_ptr<const ByteFile> file,
                                                const ZipMember& member);
// Its first bytes, up to `most`, of which the checksum says nothing.
std::string read_zip_head(const ByteFile& file, const ZipMember& member, int64_t most);

}  // namespace renkei::data
