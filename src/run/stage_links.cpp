#include "run/stage_links.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "comm/transport/tags.h"
#include "run/buffers.h"

namespace renkei::run {
namespace {

// A tag for each border and direction: what stages send over one border arrives in order. Values
// whose sizes are only known when they are made have a tag of their own, because they are received
// after their sizes, which come in the order of the others.
enum class Kind : uint8_t { in_order, after_sizes };
int border_tag(int from, int to, Kind kind = Kind::in_order) {
  const int tag = comm::kStageLinkTags.first + 4 * std::min(from, to) + (to < from ? 1 : 0) +
                  (kind == Kind::after_sizes ? 2 : 0);
  if (tag >= comm::kStageLinkTags.end())
    throw Error(ErrorCode::usage, fmt::format("no tag is left for stage {}", std::max(from, to)),
                fmt::format("plan at most {} stages", comm::kStageLinkTags.count / 4 + 1));
  return tag;
}

// What a tensor has of some samples; the whole where it has no batch.
torch::Tensor part_of(const torch::Tensor& whole, int dimension, int64_t samples, int64_t offset,
                      int64_t count) {
  if (dimension < 0 || count == samples) return whole;
  const int64_t scale = whole.size(dimension) / samples;
  return whole.narrow(dimension, offset * scale, count * scale);
}

// The receiver has made room for what the program says.
void check_shape(const StageLinks::End& from, int value, const torch::Tensor& tensor) {
  const std::vector<int64_t> wanted = from.network.shape(value, from.samples());
  if (tensor.sizes() == at::IntArrayRef(wanted) &&
      tensor.scalar_type() == from.network.dtype(value))
    return;
  throw Error(ErrorCode::data,
              fmt::format("stage {} made a value of shape {}, and by the program it is {}",
                          from.stage, fmt::join(tensor.sizes(), " × "), fmt::join(wanted, " × ")),
              "the capture does not hold for this batch: cut the network elsewhere, or make the "
              "part that makes it opaque");
}

}  // namespace

const std::vector<int>& StageLinks::End::values(int other_stage) const {
  const bool behind = other_stage > stage;
  const plan::StageValues& here = network.stage(stage);
  return behind ? here.outgoing : here.incoming;
}

std::vector<StageLinks::Overlap> StageLinks::overlaps(const End& end, int other_stage,
                                                      bool sends) const {
  std::vector<Overlap> list;
  const auto& ranks = ranks_of_stage_[static_cast<size_t>(other_stage)];
  const auto replicas = static_cast<int>(ranks.size());
  for (int replica = 0; replica < replicas; ++replica) {
    const LaneRange theirs = end.lanes.of_replica(replica, replicas);
    const LaneRange both{std::max(theirs.begin, end.mine.begin),
                         std::min(theirs.end, end.mine.end)};
    if (both.begin >= both.end) continue;
    const int64_t count = end.lanes.samples(end.step, end.micro_batch, both);
    if (count == 0) continue;
    list.push_back(
        {.rank = ranks[static_cast<size_t>(replica)],
         .offset = end.lanes.samples(end.step, end.micro_batch, {end.mine.begin, both.begin}),
         .count = count,
         .first = both.begin == (sends ? theirs.begin : end.mine.begin)});
  }
  return list;
}

void StageLinks::send(const End& from, int to_stage, const Values& values) {
  const bool forward = to_stage > from.stage;
  const int64_t samples = from.samples();
  moved_ = {};
  if (samples == 0) return;
  const auto others = overlaps(from, to_stage, /*sends=*/true);
  for (const int value : from.values(to_stage)) {
    if (!forward && !from.network.has_gradient(value)) continue;
    const int dimension = from.network.batch_dimension(value);
    const bool open = from.network.has_open_sizes(value);
    if (!open) check_shape(from, value, values.at(value));
    for (const Overlap& other : others)
      if (dimension >= 0 || other.first) {
        const torch::Tensor part =
            part_of(values.at(value), dimension, samples, other.offset, other.count);
        moved_ = {moved_.bytes + static_cast<int64_t>(part.nbytes()), other.rank};
        if (open)
          outbox_.send(other.rank, torch::tensor(part.sizes(), torch::kInt64),
                       border_tag(from.stage, to_stage));
        outbox_.send(other.rank, part,
                     border_tag(from.stage, to_stage, open ? Kind::after_sizes : Kind::in_order));
      }
  }
}

StageLinks::Incoming StageLinks::post(const End& to, int from_stage) {
  const bool forward = from_stage < to.stage;
  Incoming incoming;
  const int64_t samples = to.samples();
  if (samples == 0) return incoming;
  const auto others = overlaps(to, from_stage, /*sends=*/false);
  for (const int value : to.values(from_stage)) {
    if (!forward && !to.network.has_gradient(value)) continue;
    const int dimension = to.network.batch_dimension(value);
    if (to.network.has_open_sizes(value)) {
      const auto rank = static_cast<int64_t>(to.network.shape(value, samples).size());
      Incoming::Open open{.value = value,
                          .sizes = torch::empty({rank}, torch::kInt64),
                          .dtype = to.network.dtype(value),
                          .rank = others.front().rank,
                          .tag = border_tag(from_stage, to.stage, Kind::after_sizes)};
      open.request =
          transport_.receive(open.rank, bytes_of(open.sizes), border_tag(from_stage, to.stage));
      incoming.open_.push_back(std::move(open));
      continue;
    }
    const torch::Tensor whole = torch::empty(to.network.shape(value, samples),
                                             torch::TensorOptions(to.network.dtype(value)));
    for (const Overlap& other : others) {
      if (dimension < 0 && !other.first) continue;
      Incoming::Piece piece{.place = part_of(whole, dimension, samples, other.offset, other.count),
                            .rank = other.rank};
      piece.buffer = piece.place.is_contiguous() ? piece.place : torch::empty_like(piece.place);
      piece.request =
          transport_.receive(other.rank, bytes_of(piece.buffer), border_tag(from_stage, to.stage));
      incoming.pieces_.push_back(std::move(piece));
    }
    incoming.values_[value] = whole;
  }
  return incoming;
}

StageLinks::Values StageLinks::finish(Incoming incoming, const comm::Call& call) {
  moved_ = {};
  for (Incoming::Piece& piece : incoming.pieces_) {
    moved_ = {moved_.bytes + static_cast<int64_t>(piece.buffer.nbytes()), piece.rank};
    transport_.wait(piece.request, call);
    if (!piece.buffer.is_same(piece.place)) piece.place.copy_(piece.buffer);
  }
  for (Incoming::Open& open : incoming.open_) {
    transport_.wait(open.request, call);
    const auto* sizes = open.sizes.data_ptr<int64_t>();
    torch::Tensor whole =
        torch::empty(std::vector<int64_t>(sizes, sizes + open.sizes.numel()), open.dtype);
    moved_ = {moved_.bytes + static_cast<int64_t>(whole.nbytes()), open.rank};
    comm::Request request = transport_.receive(open.rank, bytes_of(whole), open.tag);
    transport_.wait(request, call);
    incoming.values_[open.value] = std::move(whole);
  }
  return std::move(incoming.values_);
}

void check_links(const StagedNetwork& network,
                 const std::vector<std::vector<int>>& ranks_of_stage) {
  for (size_t s = 0; s + 1 < ranks_of_stage.size(); ++s) {
    const size_t here = ranks_of_stage[s].size(), behind = ranks_of_stage[s + 1].size();
    if (here == behind) continue;
    for (const int value : network.stage(static_cast<int>(s)).outgoing)
      if (network.has_open_sizes(value))
        throw Error(ErrorCode::data,
                    fmt::format("the plan: a value whose sizes depend on other values crosses from "
                                "stage {} to {}, which have {} and {} replicas",
                                s, s + 1, here, behind),
                    "give both stages as many ranks, or cut elsewhere");
      else if (network.has_gradient(value) && network.batch_dimension(value) < 0)
        throw Error(ErrorCode::data,
                    fmt::format("the plan: a value of shape {} without a batch crosses from stage "
                                "{} to {}, which have {} and {} replicas",
                                fmt::join(network.shape(value, 1), " × "), s, s + 1, here, behind),
                    "give both stages as many ranks, or cut elsewhere");
  }
}

}  // namespace renkei::run
