#include "comm/shared_memory/shared_allreduce.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>

#include "base/error.h"
#include "comm/shared_memory/lines.h"

namespace renkei::comm {

namespace {

// The same element of two ranks' buffers is read in the same moment. Buffers a large power of two
// apart would fall on the same set of the first-level cache, and on AMD's Zen, which guesses the
// way from a hash of the address bits 12 to 27, throw each other out: measured, a third of the
// speed at 256 MiB. So each rank's buffer begins a few lines further into its part.
constexpr size_t kSkewBytes = 17 * 64;

constexpr size_t kPageBytes = 4096;
// A shared buffer needs no copying, so that its two barriers soon cost less than every rank
// reducing everything.
constexpr size_t kSmallSharedBytes = 512;

size_t rounded_up(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

SharedMemory::SharedMemory(Transport& transport, const SharedMemoryOptions& options,
                           const Call& call)
    : transport_(transport), options_(options) {
  options_.piece_bytes = rounded_up(std::max<size_t>(options.piece_bytes, 1), kPageBytes);
  options_.small_bytes = rounded_up(options.small_bytes, kLineBytes);
  const size_t ranks = local_ranks(transport).size();
  result_bytes_ = rounded_up(options_.piece_bytes / ranks + kLineBytes, kLineBytes);
  const size_t bytes =
      kPageBytes + 2 * (options_.small_bytes + options_.piece_bytes + result_bytes_);
  window_region_ = transport.share(bytes, call);
  if (!window_region_)
    throw Error(ErrorCode::bug, "the ranks of this transport have no memory that they could share");
  for (size_t local = 0; local < ranks; ++local)
    window_.push_back(window_region_->part(static_cast<int>(local)).data() + kPageBytes);
  barrier_ = std::make_unique<NodeBarrier>(transport, window_region_);
  sources_.resize(ranks);
  std::vector<std::atomic<uint64_t>*> taken;
  for (size_t local = 0; local < ranks; ++local)
    taken.push_back(&taken_blocks(static_cast<int>(local)));
  blocks_ = BlockSharing(std::move(taken), local_rank());
}

void SharedMemory::close(const Call& call) {
  barrier_->enter({.kind = OperationKind::close}, call);
  barrier_.reset();  // it lies in the window
  for (const auto& allocation : allocations_) allocation->region->close();
  for (const auto& region : common_) region->close();
  window_region_->close();
  allocations_.clear();
}

std::atomic<uint64_t>& SharedMemory::taken_blocks(int local) const {
  static_assert(std::atomic<uint64_t>::is_always_lock_free, "locks of a process are not shared");
  static_assert(NodeBarrier::kBytes + kLineBytes <= kPageBytes);
  return *reinterpret_cast<std::atomic<uint64_t>*>(window_[static_cast<size_t>(local)] -
                                                   kPageBytes + NodeBarrier::kBytes);
}

std::byte* SharedMemory::small_slot(int local, size_t turn) const {
  return window_[static_cast<size_t>(local)] + turn % 2 * options_.small_bytes;
}

std::byte* SharedMemory::piece_slot(int local, size_t turn) const {
  return window_[static_cast<size_t>(local)] + 2 * options_.small_bytes +
         turn % 2 * options_.piece_bytes;
}

std::byte* SharedMemory::result_slot(int local, size_t turn) const {
  return window_[static_cast<size_t>(local)] + 2 * options_.small_bytes + 2 * options_.piece_bytes +
         turn % 2 * result_bytes_;
}

Buffer SharedMemory::allocate(size_t count, DType dtype, const Call& call) {
  barrier_->enter({.kind = OperationKind::allocate, .dtype = dtype, .count = count}, call);
  auto allocation = std::make_unique<Allocation>();
  allocation->bytes = count * size_of(dtype);
  allocation->region =
      transport_.share(allocation->bytes + static_cast<size_t>(local_size()) * kSkewBytes, call);
  for (int local = 0; local < local_size(); ++local) {
    const auto part = allocation->region->part(local);
    // Advice only: whether memory of several processes can have huge pages is up to the system.
    madvise(part.data(), part.size(), MADV_HUGEPAGE);
    allocation->parts.push_back(part.data() + static_cast<size_t>(local) * kSkewBytes);
  }
  allocations_.push_back(std::move(allocation));
  return {allocations_.back()->parts[static_cast<size_t>(local_rank())], count, dtype};
}

Buffer SharedMemory::allocate_once(size_t count, DType dtype, const Call& call) {
  barrier_->enter({.kind = OperationKind::allocate, .dtype = dtype, .count = count}, call);
  // Every rank brings a part; the parts of a window follow each other.
  const auto ranks = static_cast<size_t>(local_size());
  const size_t part = (count * size_of(dtype) / ranks / kPageBytes + 1) * kPageBytes;
  common_.push_back(transport_.share(part, call));
  std::byte* const begin = common_.back()->part(0).data();
  for (int local = 1; local < local_size(); ++local)
    if (common_.back()->part(local).data() != begin + static_cast<size_t>(local) * part)
      throw Error(ErrorCode::communication, "the MPI library cuts shared memory into pieces",
                  "use --set comm.shared_memory=false");
  return {begin, count, dtype};
}

SharedMemory::Location SharedMemory::find(const Buffer& buffer) const {
  for (size_t index = 0; index < allocations_.size(); ++index) {
    const Allocation& allocation = *allocations_[index];
    const std::byte* const begin = allocation.parts[static_cast<size_t>(local_rank())];
    if (buffer.data < begin || buffer.data + buffer.bytes() > begin + allocation.bytes) continue;
    const size_t offset = static_cast<size_t>(buffer.data - begin);
    return {&allocation, offset, (uint64_t{index} + 1) << 48 | offset};
  }
  return {};
}

SharedMemory::Location SharedMemory::must_find(const Buffer& buffer, OperationKind kind) const {
  const Location location = find(buffer);
  if (!location.allocation)
    throw Error(ErrorCode::bug,
                fmt::format("{} of {} {} needs a buffer from SharedMemory::allocate", name_of(kind),
                            buffer.count, name_of(buffer.dtype)));
  return location;
}

Buffer SharedMemory::copy_of(int local_rank, const Buffer& mine) const {
  const Location location = must_find(mine, OperationKind::none);
  return {location.allocation->parts.at(static_cast<size_t>(local_rank)) + location.offset,
          mine.count, mine.dtype};
}

void SharedMemory::allreduce(Buffer buffer, Reduction reduction, const Call& call) {
  if (buffer.dtype == DType::u8)
    throw Error(ErrorCode::bug, "bytes have no arithmetic: u8 can be moved, not reduced");
  if (local_size() == 1) return;
  const Location location = find(buffer);
  const Operation operation{.kind = OperationKind::allreduce,
                            .dtype = buffer.dtype,
                            .reduction = reduction,
                            .count = buffer.count,
                            .place = location.place};
  const size_t small =
      std::min(options_.small_bytes, location.allocation ? kSmallSharedBytes : SIZE_MAX);
  if (buffer.bytes() <= small) return reduce_small(buffer, buffer, operation, call);
  if (location.allocation) return allreduce_shared(buffer, location, operation, call);
  reduce_private(buffer, buffer, operation, call);
}

void SharedMemory::reduce_small(ConstBuffer from, Buffer into, const Operation& operation,
                                const Call& call) {
  const auto turn = static_cast<size_t>(barrier_->operations());
  copy_bytes(small_slot(local_rank(), turn), from.data, from.bytes());
  barrier_->enter(operation, call);
  if (from.count == 0 || !into.data) return;
  for (int local = 0; local < local_size(); ++local)
    sources_[static_cast<size_t>(local)] = small_slot(local, turn);
  sources_[static_cast<size_t>(local_rank())] = from.data;
  reduce_many(into, sources_, operation.reduction);
}

void SharedMemory::allreduce_shared(Buffer buffer, const Location& location,
                                    const Operation& operation, const Call& call) {
  barrier_->enter(operation, call);
  reduce_chunks(buffer, *location.allocation, operation.reduction, /*everywhere=*/true);
  barrier_->arrive_and_wait(call);
}

void SharedMemory::reduce_chunks(Buffer buffer, const Allocation& allocation, Reduction reduction,
                                 bool everywhere) {
  blocks_.run(
      size_of(buffer.dtype), helps(buffer.bytes()),
      [&](int owner) {
        return everywhere ? line_chunk(buffer, local_size(), owner)
                          : chunk_range(buffer.count, local_size(), owner);
      },
      [&](int owner, Range block) {
        reduce_block(buffer.part(block.begin, block.size()), allocation, owner, reduction,
                     everywhere);
      });
}

void SharedMemory::reduce_block(Buffer mine, const Allocation& allocation, int owner,
                                Reduction reduction, bool everywhere) {
  const auto offset = mine.data - allocation.parts[static_cast<size_t>(local_rank())];
  others_.clear();
  for (int local = 0; local < local_size(); ++local) {
    std::byte* const theirs = allocation.parts[static_cast<size_t>(local)] + offset;
    sources_[static_cast<size_t>(local)] = theirs;
    if (everywhere && local != owner) others_.push_back(theirs);
  }
  const Buffer place(allocation.parts[static_cast<size_t>(owner)] + offset, mine.count, mine.dtype);
  reduce_and_spread(place, others_, sources_, reduction);
}

void SharedMemory::reduce_private(ConstBuffer from, Buffer into, const Operation& operation,
                                  const Call& call) {
  const size_t piece_count = options_.piece_bytes / size_of(from.dtype);
  const size_t pieces = (from.count + piece_count - 1) / piece_count;
  const auto range = [&](size_t k) {
    return Range{k * piece_count, std::min(from.count, (k + 1) * piece_count)};
  };
  for (size_t k = 0; k <= pieces; ++k, ++turn_) {
    if (k < pieces) copy_in(from.part(range(k).begin, range(k).size()), turn_);
    if (k == 0)
      barrier_->enter(operation, call);
    else
      barrier_->arrive_and_wait(call);
    if (k > 0 && into.data) copy_out(into.part(range(k - 1).begin, range(k - 1).size()), turn_ - 1);
    if (k < pieces)
      reduce_piece(from.part(range(k).begin, range(k).size()),
                   into.part(range(k).begin, range(k).size()), turn_, operation.reduction);
  }
}

// Chunks of pieces are cut as if the piece began at a cache line, as its slots do.
void SharedMemory::copy_in(ConstBuffer piece, size_t turn) {
  std::byte* const slot = piece_slot(local_rank(), turn);
  const Range mine = line_chunk({nullptr, piece.count, piece.dtype}, local_size(), local_rank());
  const size_t element = size_of(piece.dtype);
  copy_bytes(slot, piece.data, mine.begin * element);
  copy_bytes(slot + mine.end * element, piece.data + mine.end * element,
             (piece.count - mine.end) * element);
}

void SharedMemory::copy_out(Buffer piece, size_t turn) {
  for (int local = 0; local < local_size(); ++local) {
    if (local == local_rank()) continue;
    const Range theirs = line_chunk({nullptr, piece.count, piece.dtype}, local_size(), local);
    const Buffer part = piece.part(theirs.begin, theirs.size());
    copy_bytes(part.data, result_slot(local, turn), part.bytes());
  }
}

void SharedMemory::reduce_piece(ConstBuffer piece, Buffer into, size_t turn, Reduction reduction) {
  const Range mine = line_chunk({nullptr, piece.count, piece.dtype}, local_size(), local_rank());
  if (mine.size() == 0) return;
  for (int local = 0; local < local_size(); ++local)
    sources_[static_cast<size_t>(local)] =
        piece_slot(local, turn) + mine.begin * size_of(piece.dtype);
  sources_[static_cast<size_t>(local_rank())] = piece.part(mine.begin, mine.size()).data;
  const Buffer slot(result_slot(local_rank(), turn), mine.size(), piece.dtype);
  if (!into.data) return reduce_many(slot, sources_, reduction);
  const Buffer part = into.part(mine.begin, mine.size());
  reduce_many(part, sources_, reduction);
  copy_bytes(slot.data, part.data, part.bytes());
}

void SharedMemory::reduce_scatter(Buffer buffer, Reduction reduction, const Call& call) {
  if (buffer.dtype == DType::u8)
    throw Error(ErrorCode::bug, "bytes have no arithmetic: u8 can be moved, not reduced");
  const Location location = must_find(buffer, OperationKind::reduce_scatter);
  if (local_size() == 1) return;
  barrier_->enter({.kind = OperationKind::reduce_scatter,
                   .dtype = buffer.dtype,
                   .reduction = reduction,
                   .count = buffer.count,
                   .place = location.place},
                  call);
  reduce_chunks(buffer, *location.allocation, reduction, /*everywhere=*/false);
  // Peers read from this rank's other chunks until they have arrived here.
  barrier_->arrive_and_wait(call);
}

void SharedMemory::meet(Buffer buffer, const Call& call) {
  const Location location = must_find(buffer, OperationKind::allreduce);
  barrier_->enter({.kind = OperationKind::allreduce,
                   .dtype = buffer.dtype,
                   .count = buffer.count,
                   .place = location.place},
                  call);
}

void SharedMemory::all_gather(Buffer buffer, const Call& call) {
  const Location location = must_find(buffer, OperationKind::all_gather);
  if (local_size() == 1) return;
  barrier_->enter({.kind = OperationKind::all_gather,
                   .dtype = buffer.dtype,
                   .count = buffer.count,
                   .place = location.place},
                  call);
  for (int local = 0; local < local_size(); ++local) {
    if (local == local_rank()) continue;
    const Range theirs = chunk_range(buffer.count, local_size(), local);
    const Buffer part = buffer.part(theirs.begin, theirs.size());
    copy_bytes(part.data, copy_of(local, part).data, part.bytes());
  }
  barrier_->arrive_and_wait(call);
}

}  // namespace renkei::comm
