#include "bench/collective_case.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "comm/buffer/chunk_range.h"

namespace renkei::bench {
namespace {

using comm::Buffer;
using comm::chunk_range;
using comm::Collective;
using comm::DType;
using comm::Range;
using comm::Reduction;

template <typename T>
void write_as(Buffer into, std::span<const float> values) {
  std::ranges::transform(values, reinterpret_cast<T*>(into.data),
                         [](float value) { return static_cast<T>(value); });
}

void write(Buffer into, std::span<float> values) {
  switch (into.dtype) {
    case DType::f32:
      return write_as<float>(into, values);
    case DType::f64:
      return write_as<double>(into, values);
    case DType::i64:
      return write_as<int64_t>(into, values);
    case DType::f16:
    case DType::bf16:
      return comm::convert(into, Buffer(values));
    case DType::u8:
      return write_as<uint8_t>(into, values);
    default:
      throw Error(ErrorCode::bug,
                  fmt::format("{} are not measured here", comm::name_of(into.dtype)));
  }
}

// Calls work(part, first) for parts of the buffer that are small enough to have a copy of.
template <typename Work>
void by_blocks(Buffer buffer, Work work) {
  constexpr size_t kBlock = 4096;
  for (size_t first = 0; first < buffer.count; first += kBlock)
    work(buffer.part(first, std::min(kBlock, buffer.count - first)), first);
}

// `value(i)` is element i.
template <typename Value>
void fill(Buffer buffer, Value value) {
  std::vector<float> values;
  by_blocks(buffer, [&](Buffer part, size_t first) {
    values.resize(part.count);
    for (size_t i = 0; i < part.count; ++i) values[i] = value(first + i);
    write(part, values);
  });
}

template <typename Value>
int64_t count_different(Buffer buffer, Value value) {
  const size_t size = comm::size_of(buffer.dtype);
  std::vector<std::byte> expected;
  int64_t different = 0;
  by_blocks(buffer, [&](Buffer part, size_t first) {
    expected.resize(part.bytes());
    fill({expected.data(), part.count, part.dtype}, [&](size_t i) { return value(first + i); });
    for (size_t i = 0; i < part.bytes(); i += size)
      different += std::memcmp(part.data + i, expected.data() + i, size) != 0;
  });
  return different;
}

void clear(Buffer buffer) {
  std::ranges::fill(buffer.span(), std::byte{0});
}

void copy(Buffer into, Buffer from) {
  if (into.count > 0) std::memcpy(into.data, from.data, into.bytes());
}

}  // namespace

std::string_view name_of(Buffers buffers) {
  switch (buffers) {
    case Buffers::once:
      return "once";
    case Buffers::shared:
      return "shared";
    case Buffers::privates:
      return "private";
  }
  return "";
}

CollectiveCase::CollectiveCase(comm::Communicator& communicator, Collective collective,
                               Buffers buffers, Buffer buffer, Buffer other, const comm::Call& call)
    : communicator_(communicator),
      collective_(collective),
      once_(buffers == Buffers::once),
      buffer_(buffer),
      other_(other),
      call_(call),
      ranks_(communicator.transport().size()),
      rank_(communicator.transport().rank()) {}

bool CollectiveCase::exists(const comm::Communicator& communicator, Collective collective,
                            Buffers buffers, Buffer buffer) {
  if (buffers != Buffers::once) return true;
  return collective == Collective::allreduce && communicator.peers_can_read(buffer);
}

void CollectiveCase::run() {
  switch (collective_) {
    case Collective::allreduce:
      if (once_) {
        communicator_.reduce_scatter(buffer_, Reduction::sum, call_);
        return;
      }
      return communicator_.allreduce(buffer_, Reduction::sum, call_);
    case Collective::reduce_scatter:
      communicator_.reduce_scatter(buffer_, Reduction::sum, call_);
      return;
    case Collective::all_gather:
      return communicator_.all_gather(buffer_, call_);
    case Collective::broadcast:
      return communicator_.broadcast(buffer_, 0, call_);
    case Collective::all_to_all:
      return communicator_.all_to_all(other_, buffer_, call_);
  }
}

void CollectiveCase::run_from_other() {
  if (collective_ == Collective::all_gather) {
    const Range mine = chunk_range(buffer_.count, ranks_, rank_);
    copy(buffer_.part(mine.begin, mine.size()), other_.part(mine.begin, mine.size()));
  } else if (collective_ == Collective::broadcast ? rank_ == 0 : has_in_place()) {
    copy(buffer_, other_);
  }
  run();
}

// Whole numbers whose sums are at most 256, which all types have exactly: then every order of
// additions gives the same bits. (With more than 256 ranks, bf16 would round.)
float CollectiveCase::input_value(int rank, size_t i) const {
  const auto numbers = static_cast<size_t>(std::clamp(256 / ranks_ + 1, 2, 64));
  return static_cast<float>((i * 7 + static_cast<size_t>(rank) * 13) % numbers);
}

std::vector<CollectiveCase::Piece> CollectiveCase::result() {
  const auto chunk = [&](int rank, Buffer buffer) {
    const Range range = chunk_range(buffer.count, ranks_, rank);
    return Piece{range.begin, buffer.part(range.begin, range.size())};
  };
  if (collective_ == Collective::reduce_scatter) return {chunk(rank_, buffer_)};
  if (!once_) return {{0, buffer_}};
  std::vector<Piece> pieces;
  for (std::byte* const theirs : communicator_.meet(buffer_, call_))
    pieces.push_back(
        chunk(static_cast<int>(pieces.size()), {theirs, buffer_.count, buffer_.dtype}));
  return pieces;
}

float CollectiveCase::expected_value(size_t i) const {
  const auto n = static_cast<size_t>(ranks_);
  switch (collective_) {
    case Collective::allreduce:
    case Collective::reduce_scatter: {
      float sum = 0;
      for (int rank = 0; rank < ranks_; ++rank) sum += input_value(rank, i);
      return sum;
    }
    case Collective::all_gather:
      for (int rank = 0; rank < ranks_; ++rank)
        if (i < chunk_range(buffer_.count, ranks_, rank).end) return input_value(rank, i);
      return -1;
    case Collective::broadcast:
      return input_value(0, i);
    case Collective::all_to_all: {
      const size_t part = buffer_.count / n;
      return input_value(static_cast<int>(i / part), static_cast<size_t>(rank_) * part + i % part);
    }
  }
  return -1;
}

int64_t CollectiveCase::count_wrong() {
  // What other ranks have to write begins as something that no result is.
  const Range mine = chunk_range(buffer_.count, ranks_, rank_);
  const auto stays_input = [&](size_t i) {
    if (collective_ == Collective::all_gather) return i >= mine.begin && i < mine.end;
    if (collective_ == Collective::broadcast) return rank_ == 0;
    return collective_ != Collective::all_to_all;
  };
  fill(buffer_, [&](size_t i) { return stays_input(i) ? input_value(rank_, i) : 99.0f; });
  fill(other_, [&](size_t i) { return input_value(rank_, i); });
  communicator_.barrier(call_);
  run();
  int64_t wrong = 0;
  for (const Piece& piece : result())
    wrong +=
        count_different(piece.place, [&](size_t i) { return expected_value(piece.first + i); });
  // Peers may still read from this rank's buffer.
  communicator_.allreduce(Buffer(std::span(&wrong, 1)), Reduction::sum, call_);
  clear(buffer_);
  clear(other_);
  return wrong;
}

double CollectiveCase::bus_factor() const {
  const double n = ranks_;
  switch (collective_) {
    case Collective::allreduce:
      return 2 * (n - 1) / n;
    case Collective::broadcast:
      return 1;
    default:
      return (n - 1) / n;
  }
}

}  // namespace renkei::bench
