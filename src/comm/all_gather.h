#pragma once

#include <type_traits>

#include "comm/transport.h"

namespace renkei::comm {

// Every rank ends with the contributions of all ranks, in rank order: those of rank r are the r-th
// part of `all`. `mine` may be that very part of `all`, and is then not copied. T: float, double,
// int64_t, uint8_t, std::byte.
template <typename T>
void all_gather(Transport& transport, std::span<const std::type_identity_t<T>> mine,
                std::span<T> all, const Call& call = {});

// The same with counts[r] elements from rank r. All ranks must give the same counts.
template <typename T>
void all_gather_v(Transport& transport, std::span<const std::type_identity_t<T>> mine,
                  std::span<T> all, std::span<const size_t> counts, const Call& call = {});

}  // namespace renkei::comm
