#include "sim/reductions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "comm/allreduce/ring.h"
#include "sim/virtual_ranks.h"

namespace renkei::sim {
namespace {

constexpr Detail kDetails[] = {Detail::closed, Detail::rounds, Detail::flows};
// In rounds segments of a chunk count as one message anyway.
constexpr size_t kWholeChunks = size_t{1} << 40;

comm::Buffer floats(double bytes) {
  return {nullptr, static_cast<size_t>(std::ceil(bytes / 4)), comm::DType::f32};
}

}  // namespace

std::string_view name_of(Detail detail) {
  switch (detail) {
    case Detail::closed:
      return "closed";
    case Detail::rounds:
      return "rounds";
    case Detail::flows:
      return "flows";
  }
  return "";
}

Detail parse_detail(std::string_view name) {
  for (const Detail detail : kDetails)
    if (name == name_of(detail)) return detail;
  throw Error(ErrorCode::usage, fmt::format("there is no level of detail \"{}\"", name),
              "choose closed, rounds or flows");
}

Reductions::Reductions(const cluster::Description& machine, Network network,
                       ReductionOptions options)
    : network_(std::move(network)),
      options_(std::move(options)),
      model_(cluster::cost_model(machine, network_.places())) {}

comm::AllreduceOptions Reductions::allreduce_options() const {
  return {.algorithm = options_.algorithm,
          .model = &model_,
          .segment_bytes = options_.detail == Detail::rounds ? kWholeChunks : 0,
          .ring_order = options_.ring_order,
          .torus_columns = options_.torus_columns,
          .check = comm::Check::nothing};
}

void Reductions::allreduce(comm::Transport& transport, double bytes) const {
  const comm::AllreduceOptions options = allreduce_options();
  if (options_.scatter)
    ring_reduce_scatter(transport, floats(bytes), comm::Reduction::sum, {},
                        {.order = options.ring_order, .segment_bytes = options.segment_bytes});
  else
    comm::allreduce(transport, floats(bytes), comm::Reduction::sum, {}, options);
}

double Reductions::seconds(double bytes) {
  if (network_.ranks() == 1 || bytes <= 0) return 0;
  const auto [known, is_new] = seconds_.try_emplace(bytes, 0);
  if (!is_new) return known->second;
  const auto body = [&](VirtualRank& rank) { allreduce(rank, bytes); };
  switch (options_.detail) {
    case Detail::closed: {
      const auto whole = static_cast<size_t>(bytes);
      known->second = predicted_seconds(model_, options_.algorithm, whole,
                                        best_segment_bytes(model_, options_.algorithm, whole)) *
                      (options_.scatter ? 0.5 : 1);
      break;
    }
    case Detail::rounds:
      known->second = seconds_in_rounds(network_, body);
      break;
    case Detail::flows:
      known->second = std::ranges::max(ends_with_flows(network_, body));
      break;
  }
  return known->second;
}

std::vector<double> Reductions::bucket_sizes(double gradient_bytes) const {
  std::vector<double> sizes;
  const double most = options_.overlap ? options_.bucket_bytes : gradient_bytes;
  for (double left = gradient_bytes; left > 0; left -= most)
    sizes.push_back(std::min(left, most) * options_.bytes_factor);
  return sizes;
}

std::vector<double> Reductions::ends(double gradient_bytes,
                                     std::span<const schedule::RankedStep::Behind> members) {
  const std::vector<double> sizes = bucket_sizes(gradient_bytes);
  const auto ready = [&](const schedule::RankedStep::Behind& member, size_t bucket) {
    const double part = static_cast<double>(bucket + 1) / static_cast<double>(sizes.size());
    return std::max(member.network_free, member.begin + (member.end - member.begin) * part);
  };
  if (options_.detail == Detail::flows && network_.ranks() > 1) {
    std::vector<size_t> member_of(static_cast<size_t>(network_.ranks()));
    for (size_t i = 0; i < members.size(); ++i) member_of[static_cast<size_t>(members[i].rank)] = i;
    const std::vector<double> by_rank = ends_with_flows(network_, [&](VirtualRank& rank) {
      const auto& mine = members[member_of[static_cast<size_t>(rank.rank())]];
      for (size_t bucket = 0; bucket < sizes.size(); ++bucket) {
        if (rank.clock().seconds() < ready(mine, bucket)) rank.wait_until(ready(mine, bucket));
        allreduce(rank, sizes[bucket]);
      }
    });
    std::vector<double> ends;
    for (const auto& member : members) ends.push_back(by_rank[static_cast<size_t>(member.rank)]);
    return ends;
  }
  double time = 0;
  for (const auto& member : members) time = std::max(time, member.network_free);
  for (size_t bucket = 0; bucket < sizes.size(); ++bucket) {
    for (const auto& member : members) time = std::max(time, ready(member, bucket));
    time += seconds(sizes[bucket]);
  }
  return std::vector<double>(members.size(), time);
}

std::string Reductions::algorithm(double bytes) const {
  if (network_.ranks() == 1) return "none";
  if (options_.algorithm != comm::Algorithm::automatic)
    return std::string(name_of(options_.algorithm));
  const comm::Choice choice = choose(model_, static_cast<size_t>(bytes * options_.bytes_factor));
  std::string name(name_of(choice.algorithm));
  if (choice.algorithm == comm::Algorithm::hierarchical)
    name += fmt::format(", {} between nodes", name_of(choice.outer));
  return name;
}

}  // namespace renkei::sim
