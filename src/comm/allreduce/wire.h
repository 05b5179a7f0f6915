// 16 bits on the wire: the ring of ring.h for f32 buffers whose messages are f16 or bf16, half the
// bytes. A segment is converted when it is sent and added in f32 when it arrives. The rank that
// completes a segment also rounds its own copy to what it sends, and complete messages are passed
// on as they came, so all ranks hold the same bits.
//
// An f16 message begins with a scale 2^e, chosen from the largest finite magnitude m of the segment
// so that m 2^e lies in [2^14, 2^15): nothing overflows, and only what is below 2^-28 m becomes
// denormal. bf16 has the exponents of f32 and needs no scale. Infinities and NaNs stay what they
// are.
//
// Error. With u = 2^-11 (f16) or 2^-8 (bf16), a value x is rounded by at most u |x| + d, where
// d = 2^-39 m for f16 and 0 for bf16 (above the denormals of f32; the scale stops at 2^126, for
// segments below 2^-112). An element's sum is rounded n times on its way, n-1 times as a partial
// sum and once when it is complete, so to first order in u
//
//   |result - exact sum| ≤ n (u Σ|x_r| + 2^-39 M),     M = the largest Σ|x_r| in the segment,
//
// and the n-th part of it for a mean. Maximum and minimum round once: rounding keeps the order.
//
// Order of sums: that of the ring; but the scale makes the bits depend on segment_bytes.
#pragma once

#include "comm/allreduce/ring.h"

namespace renkei::comm {

// `wire` is f16 or bf16, the buffer f32; anything else is a usage Error.
void wire_ring_allreduce(Transport& transport, Buffer buffer, Reduction reduction, DType wire,
                         const Call& call, const RingOptions& options = {});

// The e of above; 0 for a segment of zeros.
int wire_exponent(std::span<const float> segment);

}  // namespace renkei::comm
