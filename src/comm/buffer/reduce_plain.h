// Reductions that no training needs often: small integers, booleans, products and bits. Plain loops
// over blocks, which a compiler makes vectors of; reduce.h calls them where it has no kernel.
#pragma once

#include <span>

#include "comm/buffer/reduce.h"

namespace renkei::comm {

bool is_reduced_plainly(DType dtype, Reduction reduction);

// reduce_and_spread() for these. Usage Errors as check_reduction().
void reduce_plainly(Buffer into, std::span<std::byte* const> copies,
                    std::span<const std::byte* const> sources, Reduction reduction);

}  // namespace renkei::comm
