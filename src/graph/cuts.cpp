#include "graph/cuts.h"

#include <algorithm>
#include <bit>
#include <set>

#include "graph/at.h"
#include "graph/order.h"

namespace renkei::graph {
namespace {

Line line_of(double bytes, bool scales, int64_t batch) {
  return scales ? Line{0, bytes / static_cast<double>(batch)} : Line{bytes, 0};
}

// For each value, the ops that use it.
std::vector<std::vector<OpIndex>> users_of(const Graph& graph) {
  std::vector<std::vector<OpIndex>> users(graph.values.size());
  for (size_t op = 0; op < graph.ops.size(); ++op)
    for (const ValueIndex value : graph.ops[op].inputs)
      users[at(value)].push_back(static_cast<OpIndex>(op));
  return users;
}

}  // namespace

Cuts::Cuts(const Graph& graph, const std::vector<std::vector<Seconds>>& seconds, Options options) {
  order_ = canonical_order(graph);
  order_bits(graph);
  complete_ = find_all_sets(graph, options.most_sets);
  if (!complete_) find_prefixes(graph, seconds.front(), options.most_prefixes);
  bool linear = true;
  for (size_t cut = 1; cut < sets_.size(); ++cut) linear = linear && contains(cut, cut - 1);
  linear_ = linear;
  sum_up(graph, seconds);
  sum_crossing(graph);
  sum_parameters(graph);
}

void Cuts::order_bits(const Graph& graph) {
  op_of_ = order_;
  std::ranges::stable_sort(op_of_, std::greater<>(),
                           [&](OpIndex op) { return graph.ops[at(op)].workspace_bytes; });
  bit_of_.resize(graph.ops.size());
  for (size_t bit = 0; bit < op_of_.size(); ++bit) {
    bit_of_[at(op_of_[bit])] = bit;
    workspace_.push_back(static_cast<double>(graph.ops[at(op_of_[bit])].workspace_bytes));
  }
}

bool Cuts::has(const Set& set, OpIndex op) const {
  const size_t bit = bit_of_[at(op)];
  return set[bit / 64] >> (bit % 64) & 1;
}

void Cuts::add(Set& set, OpIndex op) const {
  const size_t bit = bit_of_[at(op)];
  set[bit / 64] |= uint64_t{1} << (bit % 64);
}

// Grows closed sets op by op, all sets of a size before the next; false when there are too many.
bool Cuts::find_all_sets(const Graph& graph, size_t most) {
  if (graph.ops.size() + 1 > most) return false;
  const auto before = predecessors(graph);
  std::set<Set> layer{Set((graph.ops.size() + 63) / 64)};
  std::vector<Set> found(layer.begin(), layer.end());
  std::vector<size_t> counts{0};
  for (size_t count = 1; count <= graph.ops.size(); ++count) {
    std::set<Set> next;
    for (const Set& set : layer)
      for (size_t op = 0; op < graph.ops.size(); ++op) {
        const auto index = static_cast<OpIndex>(op);
        const auto ready = [&](OpIndex earlier) { return has(set, earlier); };
        if (has(set, index) || !std::ranges::all_of(before[op], ready)) continue;
        Set larger = set;
        add(larger, index);
        next.insert(std::move(larger));
        if (found.size() + next.size() > most) return false;
      }
    found.insert(found.end(), next.begin(), next.end());
    counts.resize(found.size(), count);
    layer = std::move(next);
  }
  sets_ = std::move(found);
  counts_ = std::move(counts);
  return true;
}

// Beginnings of the canonical order. When there are too many, time is divided into slices, and
// of the cuts in each slice the one stays that the fewest bytes cross.
void Cuts::find_prefixes(const Graph& graph, const std::vector<Seconds>& seconds, size_t most) {
  const size_t ops = graph.ops.size();
  const auto crossing = crossing_along(graph, order_);
  const auto batch = static_cast<double>(graph.batch);
  std::vector<double> time(ops + 1);
  for (size_t op = 0; op < ops; ++op) {
    const Seconds& cost = seconds[at(order_[op])];
    time[op + 1] = time[op] + cost.forward.at(batch) + cost.backward_input.at(batch) +
                   cost.backward_weight.at(batch);
  }
  std::vector<size_t> kept{0};
  const size_t slices = std::max<size_t>(most, 2) - 1;
  size_t slice_of_last = slices;  // of the cut kept last; none yet
  for (size_t prefix = 1; prefix < ops; ++prefix) {
    size_t slice = prefix;
    if (ops + 1 > most && time[ops] > 0)
      slice = static_cast<size_t>(time[prefix] / time[ops] * static_cast<double>(slices));
    if (slice != slice_of_last)
      kept.push_back(prefix);
    else if (crossing[prefix] < crossing[kept.back()])
      kept.back() = prefix;
    slice_of_last = slice;
  }
  kept.push_back(ops);

  Set set((ops + 63) / 64);
  size_t count = 0;
  for (const size_t prefix : kept) {
    for (; count < prefix; ++count) add(set, order_[count]);
    sets_.push_back(set);
    counts_.push_back(count);
  }
}

void Cuts::sum_up(const Graph& graph, const std::vector<std::vector<Seconds>>& seconds) {
  std::vector<bool> is_input(graph.values.size());
  for (const ValueIndex value : graph.inputs) is_input[at(value)] = true;
  std::vector<Line> saved, deferred;
  std::vector<int> uses_input;
  for (const Op& op : graph.ops) {
    const auto line = [&](int64_t bytes) {
      return line_of(static_cast<double>(bytes), scales_with_batch(graph, op), graph.batch);
    };
    saved.push_back(line(op.saved_bytes));
    deferred.push_back(line(op.deferred_bytes));
    uses_input.push_back(
        std::ranges::any_of(op.inputs, [&](ValueIndex value) { return is_input[at(value)]; }));
  }
  seconds_.assign(seconds.size(), std::vector<Seconds>(sets_.size()));
  saved_.resize(sets_.size());
  deferred_.resize(sets_.size());
  input_users_.resize(sets_.size());
  for (size_t cut = 0; cut < sets_.size(); ++cut)
    for (const OpIndex index : order_) {
      if (!has(sets_[cut], index)) continue;
      const size_t op = at(index);
      for (size_t kind = 0; kind < seconds.size(); ++kind) seconds_[kind][cut] += seconds[kind][op];
      saved_[cut] += saved[op];
      deferred_[cut] += deferred[op];
      input_users_[cut] += uses_input[op];
    }
}

void Cuts::sum_crossing(const Graph& graph) {
  const auto producer = producers(graph);
  const auto users = users_of(graph);
  std::vector<bool> is_output(graph.values.size());
  for (const ValueIndex value : graph.outputs) is_output[at(value)] = true;
  crossing_.resize(sets_.size());
  crossing_gradients_.resize(sets_.size());
  for (size_t cut = 0; cut < last(); ++cut)
    for (size_t value = 0; value < graph.values.size(); ++value) {
      if (producer[value] < 0 || !has(sets_[cut], producer[value])) continue;
      // The outputs are needed where the loss is computed, at the end.
      const bool used_later =
          is_output[value] ||
          std::ranges::any_of(users[value], [&](OpIndex op) { return !has(sets_[cut], op); });
      if (!used_later) continue;
      const Value& crossing = graph.values[value];
      const Line bytes = line_of(static_cast<double>(crossing.bytes), crossing.batch, graph.batch);
      crossing_[cut] += bytes;
      if (crossing.gradient) crossing_gradients_[cut] += bytes;
    }
}

void Cuts::sum_parameters(const Graph& graph) {
  std::vector<std::vector<OpIndex>> users(graph.parameters.size());
  for (size_t op = 0; op < graph.ops.size(); ++op) {
    std::set<ParameterIndex> used(graph.ops[op].parameters.begin(), graph.ops[op].parameters.end());
    for (const ParameterIndex parameter : used)
      users[at(parameter)].push_back(static_cast<OpIndex>(op));
  }
  trainable_.resize(sets_.size());
  buffers_.resize(sets_.size());
  summed_.resize(sets_.size());
  for (size_t parameter = 0; parameter < users.size(); ++parameter) {
    const auto bytes = static_cast<double>(graph.parameters[parameter].bytes);
    const bool trainable = graph.parameters[parameter].trainable;
    const bool summed = trainable && graph.parameters[parameter].summed;
    if (users[parameter].size() == 1) {
      for (size_t cut = 0; cut < sets_.size(); ++cut) {
        if (!has(sets_[cut], users[parameter][0])) continue;
        (trainable ? trainable_ : buffers_)[cut] += bytes;
        if (summed) summed_[cut] += bytes;
      }
    } else if (users[parameter].size() > 1) {
      Shared shared{bytes, trainable, summed, static_cast<int>(users[parameter].size()), {}};
      for (const Set& set : sets_)
        shared.users_before.push_back(static_cast<int>(
            std::ranges::count_if(users[parameter], [&](OpIndex op) { return has(set, op); })));
      shared_.push_back(std::move(shared));
    }
  }
}

bool Cuts::contains(size_t outer, size_t inner) const {
  if (linear_ || outer <= inner) return outer > inner;
  for (size_t word = 0; word < sets_[inner].size(); ++word)
    if (sets_[inner][word] & ~sets_[outer][word]) return false;
  return counts_[outer] > counts_[inner];
}

std::vector<OpIndex> Cuts::ops_between(size_t from, size_t to) const {
  std::vector<OpIndex> ops;
  for (size_t op = 0; op < bit_of_.size(); ++op) {
    const auto index = static_cast<OpIndex>(op);
    if (has(sets_[to], index) && !has(sets_[from], index)) ops.push_back(index);
  }
  return ops;
}

RangeBytes Cuts::bytes(size_t from, size_t to) const {
  RangeBytes bytes{.saved = saved_[to] - saved_[from],
                   .deferred = deferred_[to] - deferred_[from],
                   .trainable = trainable_[to] - trainable_[from],
                   .buffers = buffers_[to] - buffers_[from],
                   .summed = summed_[to] - summed_[from]};
  for (const Shared& shared : shared_) {
    const int users = shared.users_before[to] - shared.users_before[from];
    if (users == 0) continue;
    (shared.trainable ? bytes.trainable : bytes.buffers) += shared.bytes;
    if (shared.trainable && users < shared.users)
      bytes.tied += shared.bytes;
    else if (shared.summed)
      bytes.summed += shared.bytes;
  }
  return bytes;
}

// Bits are ordered by workspace, so the first op between the cuts has the largest.
double Cuts::workspace_bytes(size_t from, size_t to) const {
  for (size_t word = 0; word < sets_[to].size(); ++word)
    if (const uint64_t between = sets_[to][word] & ~sets_[from][word])
      return workspace_[word * 64 + static_cast<size_t>(std::countr_zero(between))];
  return 0;
}

bool Cuts::loads_inputs(size_t from, size_t to) const {
  return input_users_[to] > input_users_[from];
}

}  // namespace renkei::graph
