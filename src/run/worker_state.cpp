// What a rank has of the training's state, as a checkpoint names it. Which rank has what follows
// from the plan; the names and the order of elements do not, so that any plan can read what another
// has written.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/checksum.h"
#include "base/error.h"
#include "run/worker.h"

namespace renkei::run {
namespace {

using checkpoint::copy_name;
using checkpoint::optimizer_name;
using checkpoint::Reader;
using checkpoint::Run;

Run named_run(const Model& model, size_t place) {
  const program::Program& program = model.training.program;
  const program::State& state = program.state[place];
  return {.name = state.name,
          .dtype = program.value(state.value).dtype,
          .sizes = model.whole_sizes(place)};
}

// Elements of this rank's part, as runs of the whole: use(first element of the whole, bytes here).
template <typename Byte, typename Use>
void for_runs(const shard::Slice& slice, program::DType dtype, int64_t begin, std::span<Byte> bytes,
              const Use& use) {
  const auto each = static_cast<size_t>(program::bytes_of(dtype));
  slice.for_runs(begin, static_cast<int64_t>(bytes.size() / each),
                 [&](int64_t whole, int64_t here, int64_t count) {
                   use(whole, bytes.subspan(static_cast<size_t>(here - begin) * each,
                                            static_cast<size_t>(count) * each));
                 });
}

std::span<std::byte> memory_of(const torch::Tensor& tensor, const std::string& name) {
  if (!tensor.is_contiguous())
    throw Error(ErrorCode::bug, fmt::format("'{}' does not lie in one piece", name));
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

// Calls use(slot, first element of it, values) for the parts of parameters in a range.
template <typename Use>
void for_values(FlatParameters& flat, comm::Range range, const Use& use) {
  for (size_t s = 0; s < flat.slots().size(); ++s) {
    const auto first = static_cast<size_t>(flat.slots()[s].offset);
    const auto end = first + static_cast<size_t>(flat.slots()[s].count);
    const size_t from = std::max(first, range.begin), to = std::min(end, range.end);
    if (from < to)
      use(s, static_cast<int64_t>(from - first), flat.value_buffer().part(from, to - from).span());
  }
}

bool differs_between_replicas(const program::State& state, const torch::Tensor& tensor) {
  return state.kind == program::StateKind::buffer && tensor.is_floating_point();
}

}  // namespace

std::vector<Run> Worker::runs() {
  const program::Program& program = job_.model.training.program;
  std::vector<Run> runs;
  const auto add = [&](size_t place, Run run, int64_t begin, std::span<const std::byte> bytes) {
    for_runs(job_.model.slice(place), run.dtype, begin, bytes,
             [&](int64_t first, std::span<const std::byte> part) {
               run.begin = first;
               run.bytes = part;
               runs.push_back(run);
             });
  };
  for (const auto& [set, shared] : parameters_) {
    if (!shared->flat()) continue;
    if (!speaks() && sets_[static_cast<size_t>(set)].share == plan::Share::equal) continue;
    const std::vector<int>& places = sets_[static_cast<size_t>(set)].parameters;
    for_values(*shared->flat(), shared->written(),
               [&](size_t slot, int64_t begin, std::span<std::byte> bytes) {
                 const auto place = static_cast<size_t>(places[slot]);
                 add(place, named_run(job_.model, place), begin, bytes);
               });
    for (const auto& state : shared->updater()->state_runs(ParameterUpdater::Runs::written)) {
      const auto place = static_cast<size_t>(places[state.slot]);
      Run run = named_run(job_.model, place);
      run.name = optimizer_name(state.state, run.name);
      add(place, std::move(run), state.begin, state.bytes);
    }
  }
  for (size_t i = 0; i < holders_.size(); ++i) {
    const program::State& state = program.state[i];
    const auto holder = std::ranges::find(holders_[i], world_.rank());
    if (holder == holders_[i].end() || job_.model.is_trained(i) ||
        state.kind == program::StateKind::constant)
      continue;
    const torch::Tensor& tensor = job_.model.training.state[i];
    const auto copy = static_cast<size_t>(holder - holders_[i].begin());
    if (copy > 0 && !differs_between_replicas(state, tensor)) continue;
    if (!speaks() && !job_.model.slice(i).is_split()) continue;
    Run run = named_run(job_.model, i);
    run.name = copy_name(copy, run.name);
    add(i, std::move(run), 0, memory_of(tensor, state.name));
  }
  return runs;
}

void Worker::restore(Reader& reader, const comm::Call& call) {
  const program::Program& program = job_.model.training.program;
  const auto read = [&](size_t place, const Run& of, const std::string& name, int64_t begin,
                        std::span<std::byte> into) {
    for_runs(job_.model.slice(place), of.dtype, begin, into,
             [&](int64_t first, std::span<std::byte> part) {
               reader.read(name, {of.dtype, of.sizes}, first, part);
             });
  };
  for (const auto& [set, shared] : parameters_) {
    if (!shared->flat()) continue;
    const std::vector<int>& places = sets_[static_cast<size_t>(set)].parameters;
    for_values(*shared->flat(), shared->filled(),
               [&](size_t slot, int64_t begin, std::span<std::byte> bytes) {
                 const auto place = static_cast<size_t>(places[slot]);
                 const Run run = named_run(job_.model, place);
                 read(place, run, run.name, begin, bytes);
               });
    for (const auto& state : shared->updater()->state_runs(ParameterUpdater::Runs::held)) {
      const auto place = static_cast<size_t>(places[state.slot]);
      const Run run = named_run(job_.model, place);
      read(place, run, optimizer_name(state.state, run.name), state.begin, state.bytes);
    }
  }
  for (size_t i = 0; i < holders_.size(); ++i)
    if (std::ranges::binary_search(holders_[i], world_.rank()) && !job_.model.is_trained(i) &&
        program.state[i].kind != program::StateKind::constant)
      restore_place(i, reader);
  const checkpoint::Progress& progress = reader.manifest().progress;
  loss_scale_.go_on_from(progress.loss_scale, progress.good_steps);
  job_.communicator.barrier(call);
}

// A matrix with a checksum of each set of parameters on each rank, 0 where a rank has none to
// answer for, becomes known to all; then all see the same. Ranks with another part of the
// operations have other parameters under the same set.
void Worker::compare_replicas(const comm::Call& call) {
  const auto ranks = static_cast<size_t>(world_.size());
  std::vector<uint64_t> sums(sets_.size() * ranks, 0);
  for (const auto& [set, shared] : parameters_) {
    if (!shared->flat() || !shared->has_own_values()) continue;
    uint64_t& sum = sums[static_cast<size_t>(set) * ranks + static_cast<size_t>(world_.rank())];
    sum = Checksum().add(shared->flat()->value_buffer().span()).value() | 1;
  }
  job_.communicator.allreduce(
      comm::Buffer(std::span(reinterpret_cast<int64_t*>(sums.data()), sums.size())),
      comm::Reduction::sum, call);
  std::vector<int> part_of_rank;
  for (size_t rank = 0; rank < ranks; ++rank)
    part_of_rank.push_back(plan::tensor_place(job_.plan, static_cast<int>(rank)).index);
  for (size_t set = 0; set < sets_.size(); ++set)
    for (int part = 0; part < job_.plan.tensor; ++part) {
      const auto all = std::span(sums).subspan(set * ranks, ranks);
      std::vector<uint64_t> alike(all.begin(), all.end());
      for (size_t rank = 0; rank < ranks; ++rank)
        if (part_of_rank[rank] != part) alike[rank] = 0;
      find_drift(alike, job_.model.training.program, sets_[set]);
    }
}

// Who differs is wrong when most agree; of two nobody can tell.
void Worker::find_drift(std::span<const uint64_t> sums, const program::Program& program,
                        const plan::ParameterSet& set) const {
  std::map<uint64_t, std::vector<int>> groups;
  size_t holders = 0;
  for (size_t rank = 0; rank < sums.size(); ++rank)
    if (sums[rank] != 0) {
      groups[sums[rank]].push_back(static_cast<int>(rank));
      ++holders;
    }
  if (groups.size() < 2) return;
  const auto most =
      std::ranges::max_element(groups, {}, [](const auto& group) { return group.second.size(); });
  const bool majority = 2 * most->second.size() > holders;
  std::vector<std::string> names;
  std::optional<int> culprit;
  for (const auto& [sum, members] : groups) {
    if (majority && sum == most->first) continue;
    for (const int rank : members) {
      names.push_back(comm::name_of_rank(world_, rank));
      if (majority && !culprit) culprit = rank;
    }
  }
  const std::string& first = program.state[static_cast<size_t>(set.parameters.front())].name;
  const std::string what =
      majority
          ? fmt::format("{} {} other parameters than the {} other replicas", fmt::join(names, ", "),
                        names.size() == 1 ? "has" : "have", most->second.size())
          : fmt::format("{} have different parameters, and no majority tells who is right",
                        fmt::join(names, ", "));
  Error error(ErrorCode::check,
              fmt::format("replicas have drifted apart: {} (those from '{}' on)", what, first),
              "test the memory and the processor of that host, and go on from the last checkpoint: "
              "--resume");
  error.rank = culprit;
  if (culprit) error.host = world_.host(*culprit);
  throw error;
}

// With as many replicas as before, each has its own again; with others, all have the mean.
void Worker::restore_place(size_t place, Reader& reader) {
  const torch::Tensor& tensor = job_.model.training.state[place];
  const program::State& state = job_.model.training.program.state[place];
  const Run run = named_run(job_.model, place);
  const auto read = [&](size_t copy, const torch::Tensor& into) {
    for_runs(job_.model.slice(place), run.dtype, 0, memory_of(into, run.name),
             [&](int64_t first, std::span<std::byte> part) {
               reader.read(copy_name(copy, run.name), {run.dtype, run.sizes}, first, part);
             });
  };
  const torch::NoGradGuard no_grad;
  size_t copies = 1;
  while (reader.has(copy_name(copies, run.name))) ++copies;
  const std::vector<int>& holders = holders_[place];
  if (!differs_between_replicas(state, tensor)) return read(0, tensor.data());
  if (copies == holders.size())
    return read(static_cast<size_t>(std::ranges::find(holders, world_.rank()) - holders.begin()),
                tensor.data());
  torch::Tensor sum = torch::zeros_like(tensor), one = torch::empty_like(tensor);
  for (size_t copy = 0; copy < copies; ++copy) {
    read(copy, one);
    sum += one;
  }
  tensor.data().copy_(sum / static_cast<double>(copies));
}

}  // namespace renkei::run
