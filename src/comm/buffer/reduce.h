// The arithmetic of the collectives. Each kernel is compiled for several instruction sets and the
// best one is chosen at run time (Highway); reference.h has the plain loops they are tested
// against.
//
// On buffers without data they do nothing.
#pragma once

#include <span>

#include "comm/buffer/dtype.h"

namespace renkei::comm {

// A maximum or minimum of numbers with a NaN among them is NaN, whatever the order: a broken
// gradient must not hide. Sums of integers wrap around. The mean is the sum times 1/ranks, applied
// once at the end. The bitwise ones are for integers and booleans; of booleans, a sum is "or" and a
// product "and".
enum class Reduction { sum, mean, max, min, product, bit_and, bit_or, bit_xor };
std::string_view name_of(Reduction reduction);

// A usage Error with the reason when elements of this type cannot be reduced so: bytes, bits of
// floating-point numbers, means of integers (but i64, whose mean is rounded).
void check_reduction(DType dtype, Reduction reduction);

// into[i] = into[i] (reduction) from[i]; mean counts as sum. 16-bit floats are added in f32.
void reduce(Buffer into, Buffer from, Reduction reduction);

// into[i] = sources[0][i] (reduction) sources[1][i] … in that order, 16-bit floats accumulated in
// f32 and rounded once; the mean is that of the sources, scaled before it is rounded. `into` may be
// one of the sources. A single source, of any type, is copied.
void reduce_many(Buffer into, std::span<const std::byte* const> sources, Reduction reduction);

// reduce_many that writes the result to more places in the same pass.
void reduce_and_spread(Buffer into, std::span<std::byte* const> copies,
                       std::span<const std::byte* const> sources, Reduction reduction);

// buffer[i] *= factor; integers are rounded to the nearest.
void scale(Buffer buffer, double factor);

// Between f32 and f16 or bf16, to nearest even; too large for f16 becomes infinity.
void convert(Buffer into, Buffer from);

}  // namespace renkei::comm
