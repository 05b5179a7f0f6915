// Turned, cut, doubled and overwritten pieces of a good file.
#pragma once

#include <algorithm>
#include <string>

#include "base/philox.h"

namespace renkei {

inline std::string damage(const std::string& good, uint64_t number) {
  Random random(1, RandomUse::synth_image, 0, number);
  std::string bytes = good;
  const uint32_t changes = 1 + random.below(4);
  for (uint32_t i = 0; i < changes && !bytes.empty(); ++i) {
    const size_t at = random.below(static_cast<uint32_t>(bytes.size()));
    const size_t length = std::min<size_t>(1 + random.below(16), bytes.size() - at);
    switch (random.below(5)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8)));
        break;
      case 1:
        bytes[at] = static_cast<char>(random.below(256));
        break;
      case 2:
        bytes.resize(at);
        break;
      case 3:
        bytes.insert(at, bytes.substr(at, length));
        break;
      default:  // the largest and smallest numbers
        bytes.replace(at, length, length, random.below(2) ? '\xFF' : '\0');
    }
  }
  return bytes;
}

}  // namespace renkei
