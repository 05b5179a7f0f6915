// The collectives once more, as plainly as they can be written: everything goes to rank 0, which
// works in rank order and sends the result back. Oracles for tests and for `--check`; they share
// neither tags nor algorithms with what they check. Same parameters as the fast ones.
#pragma once

#include <type_traits>

#include "comm/reduce.h"
#include "comm/transport.h"

namespace renkei::comm::reference {

void barrier(Transport& transport, const Call& call = {});

template <typename T>
void broadcast(Transport& transport, std::span<T> buffer, int root, const Call& call = {});

template <typename T>
void all_gather(Transport& transport, std::span<const std::type_identity_t<T>> mine,
                std::span<T> all, const Call& call = {});

template <typename T>
void all_gather_v(Transport& transport, std::span<const std::type_identity_t<T>> mine,
                  std::span<T> all, std::span<const size_t> counts, const Call& call = {});

template <typename T>
std::span<T> reduce_scatter(Transport& transport, std::span<T> buffer, Reduction reduction,
                            const Call& call = {});

// Floating-point sums are ((x_0 + x_1) + x_2) + …, which rounds differently from the ring's.
template <typename T>
void allreduce(Transport& transport, std::span<T> buffer, Reduction reduction,
               const Call& call = {});

}  // namespace renkei::comm::reference
