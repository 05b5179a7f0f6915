// The tensors of a .pt2 file: two JSON indices (weights; constants, with those buffers that are not
// part of the state dict), and a member of the archive for each piece of memory.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "capture/archive.h"
#include "capture/json_reading.h"
#include "capture/named_tensors.h"

namespace renkei::capture {

struct Weight {
  StoredTensor tensor;
  std::string memory;  // the member of the archive; empty: there are no values
  int64_t first = 0;   // the element in it
  int64_t end = 0;     // and the one behind the last
  std::vector<int64_t> strides = {};

  // The same elements of the same memory: a tied weight.
  bool is_same_as(const Weight& other) const;
};

using Weights = std::map<std::string, Weight, std::less<>>;

// Of the program `model` in the archive. An index or a member that is missing, or empty as of a
// model made on "meta", leaves tensors without values.
Weights read_weights(const Archive& archive, const std::string& model, const Place& place);

}  // namespace renkei::capture
