#pragma once

#include <cstdint>
#include <string_view>

namespace renkei::data {

// Fields of a protocol buffer, one after the other. Only what a tf.train.Example uses: numbers and
// pieces with a length. Anything else ends the walk.
class ProtoWalk {
 public:
  explicit ProtoWalk(std::string_view bytes) : rest_(bytes) {}

  // The next field, with its number or its piece.
  bool next() {
    uint64_t tag = 0;
    if (rest_.empty() || !varint(tag)) return false;
    field = static_cast<int>(tag >> 3 & 0xFFFF);
    number = 0;
    piece = {};
    switch (tag & 7) {
      case 0:
        return varint(number);
      case 2:
        return varint(number) && take(number);
      case 5:  // a float that stands alone
        return take(sizeof(float));
      default:
        return false;
    }
  }

  bool varint(uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  bool empty() const { return rest_.empty(); }

  int field = 0;
  uint64_t number = 0;
  std::string_view piece;

 private:
  bool take(uint64_t length) {
    if (length > rest_.size()) return false;
    piece = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return true;
  }

  std::string_view rest_;
};

}  // namespace renkei::data
