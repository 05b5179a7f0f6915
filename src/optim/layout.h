// Where the parameters of a network lie in the flat buffers, and which neighbours are updated
// alike.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace renkei::optim {

struct Parameter {
  size_t offset = 0;  // of its first float in the flat buffer
  size_t count = 0;
  // False for biases and the like: no weight decay, and no rate of their own in LARS and LAMB.
  bool decays = true;
};

// A part of the flat buffer that one call of a kernel can update.
struct Segment {
  size_t begin = 0;
  size_t end = 0;
  size_t parameter = 0;  // the first one in it
  bool decays = true;
};

// In the order of the flat buffer; throws a bug Error for parameters that overlap or are unordered.
// `separate` makes one segment of each parameter and leaves the padding between them out; otherwise
// neighbours of a kind become one segment, with the padding: its values and gradients are zero and
// every rule keeps them so.
std::vector<Segment> make_segments(std::span<const Parameter> parameters, bool separate);

}  // namespace renkei::optim
