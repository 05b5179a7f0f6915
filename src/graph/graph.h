// What a model computes, and what each part of it costs: plain structs, without Torch. A graph is
// made from a program (lowering.h) or read from a file (graph_json.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace renkei::graph {

// Places in the vectors of a Graph.
using OpIndex = int;
using ValueIndex = int;
using ParameterIndex = int;

struct Value {
  std::string id;
  int64_t bytes = 0;     // for `Graph::batch` samples
  bool batch = true;     // its bytes grow with the number of samples
  bool gradient = true;  // a gradient of the same size flows back through it
  std::string name = {};
  std::vector<int64_t> shape = {};
  std::string dtype = {};
};

struct Parameter {
  std::string id;
  std::string name;
  int64_t bytes = 0;
  bool trainable = true;  // false: a buffer, which has neither gradient nor optimizer state
  // The ranks of a tensor group have shares of its gradient, which are added up once a step.
  bool summed = false;
};

// What the ranks of a tensor group exchange for an op, in halves of an allreduce (program/work.h);
// bytes are for `Graph::batch` samples.
struct Exchange {
  double halves = 0;
  double bytes = 0;
};

// Seconds, saved bytes and workspace are those of `Graph::batch` samples. The fixed part of a time
// is what would remain with no samples: with a measurement at two sizes, times are a line.
struct Op {
  std::string id;
  std::string name;
  std::string kind;
  std::vector<ValueIndex> inputs, outputs;
  std::vector<ParameterIndex> parameters;
  double forward_seconds = 0;
  double backward_seconds = 0;
  double forward_fixed_seconds = 0;
  double backward_fixed_seconds = 0;
  // The share of the backward time that the gradient of the inputs takes; the rest is the gradient
  // of the parameters, which nobody waits for.
  double backward_input_share = 1;
  int64_t saved_bytes = 0;      // what forward keeps for backward
  int64_t deferred_bytes = 0;   // what backward keeps while the gradient of parameters is put off
  int64_t workspace_bytes = 0;  // needed while it computes
  // For estimates with a device's roofline: work and memory traffic of forward; 0: unknown.
  double flops = 0;
  double traffic_bytes = 0;
  Exchange exchange_forward = {}, exchange_backward = {};
};

struct Graph {
  std::string name;
  int64_t batch = 1;       // samples that the costs are for
  bool estimated = false;  // times come from FLOPs and bytes, not from a measurement
  std::vector<Op> ops;     // in topological order
  std::vector<Value> values;
  std::vector<Parameter> parameters;
  std::vector<ValueIndex> inputs, outputs;
};

// Whether the costs of an op grow with the number of samples.
bool scales_with_batch(const Graph& graph, const Op& op);

int64_t parameter_bytes(const Graph& graph);  // trainable and not, each parameter once

// The op that produces each value; -1 for inputs of the graph.
std::vector<OpIndex> producers(const Graph& graph);

// For each op, the ops that produce its inputs (each once, ascending).
std::vector<std::vector<OpIndex>> predecessors(const Graph& graph);

// Puts the ops in topological order, keeping the given order where it may. Throws a data Error that
// names the op or value: a cycle, a value that is produced twice or by nobody, a place out of
// range, an id used twice, a negative or non-finite cost. `source` begins the message.
void check_and_sort(Graph& graph, const std::string& source);

}  // namespace renkei::graph
