// What must hold for the collectives over any transport. Every rank calls the same case; what does
// not hold becomes a GoogleTest failure (from whichever thread or process finds it). The thread
// tests run them for 1 to 8 ranks, the MPI test program for the ranks that it was given.
#pragma once

#include "comm/transport/transport.h"

namespace renkei::comm {

// Against the reference and against what any rank can compute, for counts 0, 1, odd, fewer than
// ranks and 100003, for each element type and each reduction.
void check_barrier(Transport& transport);
void check_broadcast(Transport& transport);
void check_all_gather(Transport& transport);
void check_all_gather_v(Transport& transport);
void check_reduce_scatter(Transport& transport);
void check_all_to_all(Transport& transport);

// Every algorithm.
void check_allreduce(Transport& transport);

// Order-dependent sums: the same bits on every rank, and close to the reference.
void check_allreduce_gives_same_bits(Transport& transport);

// 300 collectives in a random order, nothing between them: no message may reach another one.
void check_random_sequence(Transport& transport);

// Ranks with even and with odd numbers sum for themselves, in memory that only they share.
void check_groups_share_memory(Transport& transport);

// One message of more than 2^31 bytes. About 2.1 GB per rank, and as much again in the transport.
void check_broadcast_above_2_31_bytes(Transport& transport);

// The last rank stays away from a broadcast of its own, and rank 0 says so. The broadcast stays
// unfinished, so this is the last case to run on a transport.
void check_missing_rank_is_named(Transport& transport);

}  // namespace renkei::comm
