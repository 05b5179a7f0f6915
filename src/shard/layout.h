// How a value lies on the T ranks of a tensor group, forward and back:
//
//   layout     value on each rank               gradient on each rank
//   whole      all of it                        all of it
//   copied     all of it                        a share: the sum over the ranks is the gradient
//   split      its part along a dimension       its part
//   partial    a share: the sum is the value    all of it
//
// What copied is to partial, forward is to backward: a dense layer that is split by columns takes a
// copied input, one that is split by rows gives a partial output (Megatron-LM's f and g are the
// ways from whole to copied and from partial to whole).
//
// A split dimension of n elements is cut into `blocks` of equal length, and each block into T
// parts: rank t has part t of each. More than one block is what "queries, keys and values side by
// side" needs. A dimension that grows with the batch is cut by samples, in one block: the first
// ranks have one more where they do not divide.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program/program.h"

namespace renkei::shard {

struct Layout {
  enum class Kind : uint8_t { whole, copied, split, partial };
  Kind kind = Kind::whole;
  int dim = -1;        // of a split one
  int64_t blocks = 1;  // of a split one

  bool is_split() const { return kind == Kind::split; }
  bool operator==(const Layout&) const = default;
};
inline constexpr Layout kWhole{};
inline constexpr Layout kCopied{.kind = Layout::Kind::copied};
inline constexpr Layout kPartial{.kind = Layout::Kind::partial};
inline Layout split(int dim, int64_t blocks = 1) {
  return {.kind = Layout::Kind::split, .dim = dim, .blocks = blocks};
}
std::string name_of(const Layout& layout);  // "split 1/3"

// A rank's place in its tensor group.
struct Part {
  int parts = 1;
  int index = 0;
};

// How often a size counts the samples: 49 of "49*batch"; 0: it is no multiple of the batch.
int64_t batch_unit(const program::Program& program, const program::Size& size);

// The size of a split dimension on one rank.
program::Size local_size(const program::Program& program, const program::Size& size,
                         const Part& part);
std::vector<program::Size> local_sizes(const program::Program& program,
                                       const std::vector<program::Size>& sizes,
                                       const Layout& layout, const Part& part);

}  // namespace renkei::shard
