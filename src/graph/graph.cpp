#include "graph/graph.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <string_view>
#include <unordered_set>

#include "base/error.h"

namespace renkei::graph {
namespace {

[[noreturn]] void refuse(const std::string& source, const std::string& what,
                         const std::string& hint = "") {
  throw Error(ErrorCode::data, source + ": " + what, hint);
}

template <typename Part>
void check_ids(const std::vector<Part>& parts, std::string_view kind, const std::string& source) {
  std::unordered_set<std::string_view> seen;
  for (const Part& part : parts)
    if (!seen.insert(part.id).second)
      refuse(source, fmt::format("the id '{}' is used by two {}", part.id, kind),
             "give each of them an id of its own");
}

void check_places(const std::vector<int>& places, size_t count, std::string_view what,
                  const std::string& source) {
  for (const int place : places)
    if (place < 0 || static_cast<size_t>(place) >= count)
      refuse(source, fmt::format("{} has place {} where there are {}", what, place, count));
}

void check_costs(const Op& op, const std::string& source) {
  const auto bad = [](double cost) { return !std::isfinite(cost) || cost < 0; };
  if (bad(op.forward_seconds) || bad(op.backward_seconds) || bad(op.forward_fixed_seconds) ||
      bad(op.backward_fixed_seconds) || bad(op.flops) || bad(op.traffic_bytes) ||
      bad(op.backward_input_share) || op.backward_input_share > 1 || op.saved_bytes < 0 ||
      op.deferred_bytes < 0 || op.workspace_bytes < 0)
    refuse(source, fmt::format("op '{}' has a cost that is negative or not a number", op.id));
}

// Kahn's algorithm; among the ops that could come next, the one that was given first.
void sort(Graph& graph, const std::string& source) {
  const auto before = predecessors(graph);
  std::vector<std::vector<OpIndex>> after(graph.ops.size());
  std::vector<size_t> missing(graph.ops.size());
  std::priority_queue<OpIndex, std::vector<OpIndex>, std::greater<>> ready;
  for (size_t op = 0; op < graph.ops.size(); ++op) {
    missing[op] = before[op].size();
    for (const OpIndex earlier : before[op])
      after[static_cast<size_t>(earlier)].push_back(static_cast<OpIndex>(op));
    if (missing[op] == 0) ready.push(static_cast<OpIndex>(op));
  }
  std::vector<Op> sorted;
  std::vector<bool> placed(graph.ops.size());
  while (!ready.empty()) {
    const auto op = static_cast<size_t>(ready.top());
    ready.pop();
    placed[op] = true;
    sorted.push_back(graph.ops[op]);
    for (const OpIndex later : after[op])
      if (--missing[static_cast<size_t>(later)] == 0) ready.push(later);
  }
  if (sorted.size() < graph.ops.size()) {
    const auto stuck = static_cast<size_t>(std::ranges::find(placed, false) - placed.begin());
    refuse(source, fmt::format("op '{}' is part of a cycle, or needs one", graph.ops[stuck].id),
           "an op can't need a value that is made from its own outputs");
  }
  graph.ops = std::move(sorted);
}

}  // namespace

bool scales_with_batch(const Graph& graph, const Op& op) {
  const auto batch = [&](ValueIndex value) {
    return graph.values[static_cast<size_t>(value)].batch;
  };
  return std::ranges::any_of(op.inputs, batch) || std::ranges::any_of(op.outputs, batch);
}

int64_t parameter_bytes(const Graph& graph) {
  int64_t bytes = 0;
  for (const Parameter& parameter : graph.parameters) bytes += parameter.bytes;
  return bytes;
}

std::vector<OpIndex> producers(const Graph& graph) {
  std::vector<OpIndex> producer(graph.values.size(), -1);
  for (size_t op = 0; op < graph.ops.size(); ++op)
    for (const ValueIndex value : graph.ops[op].outputs)
      producer[static_cast<size_t>(value)] = static_cast<OpIndex>(op);
  return producer;
}

std::vector<std::vector<OpIndex>> predecessors(const Graph& graph) {
  const auto producer = producers(graph);
  std::vector<std::vector<OpIndex>> before(graph.ops.size());
  for (size_t op = 0; op < graph.ops.size(); ++op) {
    for (const ValueIndex value : graph.ops[op].inputs)
      if (const OpIndex from = producer[static_cast<size_t>(value)]; from >= 0)
        before[op].push_back(from);
    std::ranges::sort(before[op]);
    before[op].erase(std::unique(before[op].begin(), before[op].end()), before[op].end());
  }
  return before;
}

void check_and_sort(Graph& graph, const std::string& source) {
  if (graph.ops.empty()) refuse(source, "the graph has no ops");
  if (graph.batch < 1) refuse(source, "the batch must be at least 1");
  check_ids(graph.ops, "ops", source);
  check_ids(graph.values, "values", source);
  check_ids(graph.parameters, "parameters", source);
  check_places(graph.inputs, graph.values.size(), "the list of inputs", source);
  check_places(graph.outputs, graph.values.size(), "the list of outputs", source);
  for (const Value& value : graph.values)
    if (value.bytes < 0) refuse(source, fmt::format("value '{}' has negative bytes", value.id));
  for (const Parameter& parameter : graph.parameters)
    if (parameter.bytes < 0)
      refuse(source, fmt::format("parameter '{}' has negative bytes", parameter.id));

  std::vector<std::string_view> maker(graph.values.size());
  for (const ValueIndex value : graph.inputs) maker[static_cast<size_t>(value)] = "(an input)";
  for (const Op& op : graph.ops) {
    const std::string what = fmt::format("op '{}'", op.id);
    check_places(op.inputs, graph.values.size(), what, source);
    check_places(op.outputs, graph.values.size(), what, source);
    check_places(op.parameters, graph.parameters.size(), what, source);
    check_costs(op, source);
    for (const ValueIndex value : op.outputs) {
      std::string_view& by = maker[static_cast<size_t>(value)];
      if (!by.empty())
        refuse(source, fmt::format("value '{}' is made by {} and by {}",
                                   graph.values[static_cast<size_t>(value)].id, by, op.id));
      by = op.id;
    }
  }
  const auto check_made = [&](ValueIndex value, const std::string& user) {
    if (maker[static_cast<size_t>(value)].empty())
      refuse(source, fmt::format("value '{}', which {} uses, is neither an input nor made by an op",
                                 graph.values[static_cast<size_t>(value)].id, user));
  };
  for (const Op& op : graph.ops)
    for (const ValueIndex value : op.inputs) check_made(value, fmt::format("op '{}'", op.id));
  for (const ValueIndex value : graph.outputs) check_made(value, "the list of outputs");
  sort(graph, source);
}

}  // namespace renkei::graph
