#include "comm/shared_memory/host_collectives.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>

#include "base/error.h"
#include "comm/collectives/exchange.h"
#include "comm/shared_memory/lines.h"

namespace renkei::comm {
namespace {

// Up to here, a copy into the window and one barrier take less than two barriers.
constexpr size_t kSmallReduction = 2 << 10;
constexpr size_t kSmallPart = 4 << 10;

size_t rounded_up(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// The arena of another process, mapped once for all groups of this one.
std::shared_ptr<MemoryMap> map_of(const MemoryHandle& handle) {
  static std::mutex mutex;
  static std::map<std::pair<pid_t, int>, std::weak_ptr<MemoryMap>> maps;
  const std::lock_guard lock(mutex);
  std::weak_ptr<MemoryMap>& known = maps[{handle.process, handle.file}];
  std::shared_ptr<MemoryMap> map = known.lock();
  if (!map) known = map = std::make_shared<MemoryMap>(MemoryFile::open(handle));
  return map;
}

std::vector<MemoryHandle> exchange_handles(Transport& transport, const MemoryHandle& mine,
                                           const Call& call) {
  const auto n = static_cast<size_t>(transport.size());
  std::vector<MemoryHandle> all(n);
  all[static_cast<size_t>(transport.rank())] = mine;
  for (int step = 1; step < transport.size(); ++step) {
    const int to = wrap(transport.rank() + step, transport.size());
    const int from = wrap(transport.rank() - step, transport.size());
    comm::exchange(transport, to, std::as_bytes(std::span(&mine, 1)), from,
                   std::as_writable_bytes(std::span(&all[static_cast<size_t>(from)], 1)),
                   Tag::share, call);
  }
  return all;
}

}  // namespace

// A place is an offset into the owner's arena plus 1; 0 is private memory.
struct alignas(kLineBytes) HostCollectives::Note {
  uint64_t input, output;
  uint64_t staged_bytes;  // that come through the window
  uint64_t direct;        // whether others read from the arena
};
struct HostCollectives::Part {
  uint64_t place;
  uint64_t bytes;
  uint64_t staged_at;  // of a private part: where it begins among the staged bytes
  uint64_t unused;
};

HostCollectives::HostCollectives(Transport& transport, Arena* arena, const Call& call,
                                 const SharedMemoryOptions& options)
    : transport_(transport),
      arena_(arena),
      memory_(transport, options, call),
      n_(transport.size()),
      me_(transport.rank()) {
  if (memory_.local_size() != n_)
    throw Error(ErrorCode::bug, "collectives of one host among ranks of several");
  const size_t bytes =
      sizeof(Note) + rounded_up(sizeof(Part) * static_cast<size_t>(n_), kLineBytes);
  notes_ = transport.share(2 * bytes, call);
  handles_ = exchange_handles(transport, arena ? arena->handle() : MemoryHandle(), call);
  const auto n = static_cast<size_t>(n_);
  maps_.resize(n);
  inputs_.resize(n);
  outputs_.resize(n);
  sources_.resize(n);
}

HostCollectives::~HostCollectives() = default;

HostCollectives::Note& HostCollectives::note(int rank) const {
  const size_t bytes = notes_->part(rank).size() / 2 / kLineBytes * kLineBytes;
  return *reinterpret_cast<Note*>(notes_->part(rank).data() + parity_ % 2 * bytes);
}

HostCollectives::Part& HostCollectives::part(int owner, int reader) const {
  return *(reinterpret_cast<Part*>(&note(owner) + 1) + reader);
}

// While an operation lasts, others read and write in tensors of this rank. One that fails leaves
// some of them behind, who may come late: what they do then must not reach tensors that are used
// for other things by now.
class HostCollectives::Lending {
 public:
  explicit Lending(HostCollectives& of) : of_(of) {
    of_.lent_.clear();
    if (of_.arena_) hold_ = of_.arena_->hold();
  }
  ~Lending() {
    if (std::uncaught_exceptions() == before_) return;
    for (const std::span<const std::byte> bytes : of_.lent_)
      of_.arena_->withdraw(bytes.data(), bytes.size());
  }
  Lending(const Lending&) = delete;
  Lending& operator=(const Lending&) = delete;

 private:
  HostCollectives& of_;
  const int before_ = std::uncaught_exceptions();
  std::optional<Arena::Hold> hold_;
};

uint64_t HostCollectives::place_of(const void* data, size_t bytes) {
  if (!arena_) return 0;
  const auto offset = arena_->share(data, bytes);
  if (!offset) return 0;
  lent_.emplace_back(static_cast<const std::byte*>(data), bytes);
  return *offset + 1;
}

std::byte* HostCollectives::at(int owner, uint64_t place) {
  const auto index = static_cast<size_t>(owner);
  if (!maps_[index]) maps_[index] = map_of(handles_[index]);
  return maps_[index]->data() + (place - 1);
}

bool HostCollectives::all_shared() const {
  for (int rank = 0; rank < n_; ++rank)
    if (!note(rank).direct) return false;
  return true;
}

void HostCollectives::barrier(const Call& call) {
  memory_.barrier(call);
}

void HostCollectives::reduce(ConstBuffer from, Buffer into, Reduction reduction,
                             std::optional<int> root, const Call& call) {
  check_reduction(from.dtype, reduction);
  const bool wanted = !root || *root == me_;
  if (n_ == 1) {
    if (into.data != from.data && from.count > 0) std::memcpy(into.data, from.data, from.bytes());
    return;
  }
  const Operation operation{.kind = OperationKind::allreduce,
                            .dtype = from.dtype,
                            .reduction = reduction,
                            .count = from.count,
                            .place = root ? static_cast<uint64_t>(*root) + 1 : 0};
  if (!wanted) into = Buffer(nullptr, from.count, from.dtype);
  if (from.bytes() <= kSmallReduction) return memory_.reduce_small(from, into, operation, call);

  const Lending lending(*this);
  ++parity_;
  Note& mine = note(me_);
  // The output first: an input may be a part of it.
  mine.output = wanted ? place_of(into.data, into.bytes()) : 0;
  mine.input = place_of(from.data, from.bytes());
  mine.direct = mine.input != 0 && (mine.output != 0 || !wanted);
  memory_.node().enter(operation, call);
  if (!all_shared()) return memory_.reduce_private(from, into, operation, call);
  reduce_directly(from.count, from.dtype, reduction, root);
  memory_.node().arrive_and_wait(call);
}

void HostCollectives::reduce_directly(size_t count, DType dtype, Reduction reduction,
                                      std::optional<int> root) {
  for (int rank = 0; rank < n_; ++rank) {
    inputs_[static_cast<size_t>(rank)] = at(rank, note(rank).input);
    if (!root || *root == rank) outputs_[static_cast<size_t>(rank)] = at(rank, note(rank).output);
  }
  const Buffer shape(nullptr, count, dtype);
  memory_.blocks().run(
      size_of(dtype), memory_.helps(shape.bytes()),
      [&](int owner) { return line_chunk(shape, n_, owner); },
      [&](int owner, Range block) {
        const size_t offset = block.begin * size_of(dtype);
        copies_.clear();
        for (int rank = 0; rank < n_; ++rank) {
          sources_[static_cast<size_t>(rank)] = inputs_[static_cast<size_t>(rank)] + offset;
          if (!root && rank != owner)
            copies_.push_back(outputs_[static_cast<size_t>(rank)] + offset);
        }
        std::byte* const place = outputs_[static_cast<size_t>(root.value_or(owner))] + offset;
        reduce_and_spread({place, block.size(), dtype}, copies_, sources_, reduction);
      });
}

void HostCollectives::reduce_scatter(const std::vector<const std::byte*>& from, Buffer into,
                                     Reduction reduction, const Call& call) {
  check_reduction(into.dtype, reduction);
  const auto me = static_cast<size_t>(me_);
  if (n_ == 1) {
    if (into.count > 0) std::memmove(into.data, from[0], into.bytes());
    return;
  }
  const Operation operation{.kind = OperationKind::reduce_scatter,
                            .dtype = into.dtype,
                            .reduction = reduction,
                            .count = into.count};
  if (into.bytes() <= kSmallPart) return reduce_scatter_staged(from, into, operation, false, call);

  const Lending lending(*this);
  ++parity_;
  Note& mine = note(me_);
  mine.direct = 1;
  // Neighbours in one block are shared at once, whose pages may hold the ends of two of them.
  const bool adjoining = [&] {
    for (size_t q = 1; q < from.size(); ++q)
      if (from[q] != from[q - 1] + into.bytes()) return false;
    return true;
  }();
  if (adjoining) place_of(from[0], into.bytes() * from.size());
  for (int reader = 0; reader < n_; ++reader) {
    const uint64_t place = place_of(from[static_cast<size_t>(reader)], into.bytes());
    part(me_, reader).place = place;
    mine.direct &= static_cast<uint64_t>(place != 0);
  }
  memory_.node().enter(operation, call);
  if (!all_shared()) return reduce_scatter_staged(from, into, operation, true, call);
  for (int rank = 0; rank < n_; ++rank)
    inputs_[static_cast<size_t>(rank)] = at(rank, part(rank, me_).place);
  inputs_[me] = const_cast<std::byte*>(from[me]);
  const size_t block = BlockSharing::kBlockBytes / size_of(into.dtype);
  for (size_t first = 0; first < into.count; first += block) {
    for (size_t rank = 0; rank < sources_.size(); ++rank)
      sources_[rank] = inputs_[rank] + first * size_of(into.dtype);
    reduce_many(into.part(first, std::min(block, into.count - first)), sources_, reduction);
  }
  memory_.node().arrive_and_wait(call);
}

// In round k the slot of each rank has slice k of the parts of all others, side by side, so that
// all ranks have the same to do in every round.
void HostCollectives::reduce_scatter_staged(const std::vector<const std::byte*>& from, Buffer into,
                                            const Operation& operation, bool entered,
                                            const Call& call) {
  const size_t slice_bytes =
      memory_.piece_bytes() / static_cast<size_t>(n_) / kLineBytes * kLineBytes;
  const size_t slice = slice_bytes / size_of(into.dtype);
  const size_t rounds = std::max<size_t>(1, (into.count + slice - 1) / slice);
  for (size_t k = 0; k < rounds; ++k) {
    const size_t turn = memory_.turn()++;
    const Buffer piece = into.part(k * slice, std::min(slice, into.count - k * slice));
    const size_t offset = k * slice * size_of(into.dtype);
    for (int reader = 0; reader < n_; ++reader)
      if (reader != me_)
        copy_bytes(memory_.piece_slot(me_, turn) + static_cast<size_t>(reader) * slice_bytes,
                   from[static_cast<size_t>(reader)] + offset, piece.bytes());
    if (k == 0 && !entered)
      memory_.node().enter(operation, call);
    else
      memory_.node().arrive_and_wait(call);
    if (piece.count == 0) continue;
    for (int rank = 0; rank < n_; ++rank)
      sources_[static_cast<size_t>(rank)] =
          rank == me_ ? from[static_cast<size_t>(rank)] + offset
                      : memory_.piece_slot(rank, turn) + static_cast<size_t>(me_) * slice_bytes;
    reduce_many(piece, sources_, operation.reduction);
  }
}

void HostCollectives::exchange(const Parts& parts, uint64_t count, const Call& call) {
  const std::span<const std::byte> own = parts.to[static_cast<size_t>(me_)];
  const std::span<std::byte> own_place = parts.from[static_cast<size_t>(me_)];
  if (own.size() != own_place.size())
    throw_sizes_differ(transport_, me_, own_place.size(), own.size(), call);
  if (!own.empty() && own.data() != own_place.data())
    std::memmove(own_place.data(), own.data(), own.size());
  if (n_ == 1) return;

  const Lending lending(*this);
  ++parity_;
  Note& mine = note(me_);
  mine.staged_bytes = 0;
  mine.direct = 0;
  share_around(parts);
  for (int reader = 0; reader < n_; ++reader) {
    const std::span<const std::byte> bytes = parts.to[static_cast<size_t>(reader)];
    Part& entry = part(me_, reader);
    entry = {};
    entry.bytes = bytes.size();
    if (bytes.empty() || reader == me_) continue;
    if (bytes.size() > kSmallPart) entry.place = place_of(bytes.data(), bytes.size());
    if (entry.place != 0) {
      mine.direct = 1;
      continue;
    }
    // The same bytes for all go through the window once.
    int same = 0;
    while (same < reader && (same == me_ || part(me_, same).place != 0 ||
                             parts.to[static_cast<size_t>(same)].data() != bytes.data() ||
                             parts.to[static_cast<size_t>(same)].size() != bytes.size()))
      ++same;
    entry.staged_at = same < reader ? part(me_, same).staged_at : mine.staged_bytes;
    if (same == reader) mine.staged_bytes += rounded_up(bytes.size(), kLineBytes);
  }
  size_t turn = memory_.turn()++;
  stage(parts, 0, turn);
  memory_.node().enter({.kind = OperationKind::exchange, .count = count}, call);
  check_sizes(parts, call);
  uint64_t staged = 0, direct = 0;
  for (int rank = 0; rank < n_; ++rank) {
    staged = std::max(staged, note(rank).staged_bytes);
    direct |= note(rank).direct;
  }
  fetch_staged(parts, 0, turn);
  if (direct) fetch_direct(parts);
  for (size_t round = 1; round * memory_.piece_bytes() < staged; ++round) {
    turn = memory_.turn()++;
    stage(parts, round, turn);
    memory_.node().arrive_and_wait(call);
    fetch_staged(parts, round, turn);
  }
  if (direct) memory_.node().arrive_and_wait(call);
}

// What is sent may be a part of a tensor that is received, as in an all-gather in place: shared as
// a whole, its parts are shared too, whose pages hold the ends of others.
void HostCollectives::share_around(const Parts& parts) {
  const std::span<const std::byte> sent = parts.to[static_cast<size_t>(n_ - 1 == me_ ? 0 : n_ - 1)];
  std::span<std::byte> run = parts.from[0];
  if (!arena_ || sent.size() <= kSmallPart || run.empty()) return;
  for (size_t q = 1; q < parts.from.size(); ++q)
    if (parts.from[q].data() == run.data() + run.size())
      run = {run.data(), run.size() + parts.from[q].size()};
  if (sent.data() >= run.data() && sent.data() < run.data() + run.size())
    place_of(run.data(), run.size());
}

void HostCollectives::stage(const Parts& parts, size_t round, size_t turn) const {
  const size_t begin = round * memory_.piece_bytes(), end = begin + memory_.piece_bytes();
  uint64_t done = begin;  // what lies before was staged, for another reader
  for (int reader = 0; reader < n_; ++reader) {
    const Part& entry = part(me_, reader);
    if (reader == me_ || entry.place != 0 || entry.bytes == 0) continue;
    const size_t first = std::max<size_t>(done, entry.staged_at);
    const size_t last = std::min<size_t>(end, entry.staged_at + entry.bytes);
    if (first >= last) continue;
    copy_bytes(memory_.piece_slot(me_, turn) + (first - begin),
               parts.to[static_cast<size_t>(reader)].data() + (first - entry.staged_at),
               last - first);
    done = last;
  }
}

void HostCollectives::fetch_staged(const Parts& parts, size_t round, size_t turn) const {
  const size_t begin = round * memory_.piece_bytes(), end = begin + memory_.piece_bytes();
  for (int step = 1; step < n_; ++step) {
    const int owner = wrap(me_ + step, n_);
    const Part& entry = part(owner, me_);
    if (entry.place != 0 || entry.bytes == 0) continue;
    const size_t first = std::max<size_t>(begin, entry.staged_at);
    const size_t last = std::min<size_t>(end, entry.staged_at + entry.bytes);
    if (first >= last) continue;
    copy_bytes(parts.from[static_cast<size_t>(owner)].data() + (first - entry.staged_at),
               memory_.piece_slot(owner, turn) + (first - begin), last - first);
  }
}

void HostCollectives::fetch_direct(const Parts& parts) {
  for (int step = 1; step < n_; ++step) {
    const int owner = wrap(me_ + step, n_);
    const Part entry = part(owner, me_);
    if (entry.place == 0) continue;
    copy_bytes(parts.from[static_cast<size_t>(owner)].data(), at(owner, entry.place), entry.bytes);
  }
}

void HostCollectives::check_sizes(const Parts& parts, const Call& call) const {
  for (int owner = 0; owner < n_; ++owner) {
    const size_t expected = parts.from[static_cast<size_t>(owner)].size();
    if (part(owner, me_).bytes != expected)
      throw_sizes_differ(transport_, owner, expected, part(owner, me_).bytes, call);
  }
}

}  // namespace renkei::comm
