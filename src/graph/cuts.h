// Where can a graph be cut? Into what has been computed and what has not: a cut is a set of ops
// closed under predecessors, so that values flow over it in one direction only, however the graph
// forks, joins or skips. A stage is what lies between two cuts, one inside the other.
//
// Costs are summed up to each cut once; what lies between two cuts is then a difference, in O(1)
// (O(number of shared parameters) for parameters).
//
// A value that is needed several stages later crosses each cut in between: stages pass it on to
// their neighbour. Inputs of the graph do not cross: each stage loads what it needs.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/costs.h"
#include "graph/graph.h"

namespace renkei::graph {

// What a stage keeps in memory.
struct RangeBytes {
  Line saved;            // by forward for backward
  Line deferred;         // by backward, while the gradients of parameters are put off
  double trainable = 0;  // parameters that have a gradient
  double buffers = 0;    // parameters that have none
  double tied = 0;       // the part of `trainable` that is also used outside the stage
  double summed = 0;     // the rest of it that is summed over tensor groups
};

class Cuts {
 public:
  struct Options {
    // All closed sets, when there are not more; else beginnings of the canonical order, as many.
    size_t most_sets = 256;
    size_t most_prefixes = 512;
  };
  // `seconds` has the times of all ops for each kind of device.
  Cuts(const Graph& graph, const std::vector<std::vector<Seconds>>& seconds, Options options);
  Cuts(const Graph& graph, const std::vector<std::vector<Seconds>>& seconds)
      : Cuts(graph, seconds, Options{}) {}

  // Cut 0 is before all ops, cut last() after all; a cut that contains another has a larger number.
  size_t size() const { return sets_.size(); }
  size_t last() const { return sets_.size() - 1; }
  bool complete() const { return complete_; }  // every closed set is there
  bool linear() const { return linear_; }      // each cut contains all before it

  // Whether cut `outer` has all ops of `inner` and more.
  bool contains(size_t outer, size_t inner) const;
  std::vector<OpIndex> ops_between(size_t from, size_t to) const;
  size_t ops_before(size_t cut) const { return counts_[cut]; }

  Seconds seconds(size_t kind, size_t from, size_t to) const {
    return seconds_[kind][to] - seconds_[kind][from];
  }
  RangeBytes bytes(size_t from, size_t to) const;
  Line saved_bytes(size_t from, size_t to) const { return saved_[to] - saved_[from]; }
  // The largest workspace of an op between, for as many samples as the graph's costs.
  double workspace_bytes(size_t from, size_t to) const;
  const Line& crossing_bytes(size_t cut) const { return crossing_[cut]; }
  const Line& crossing_gradient_bytes(size_t cut) const { return crossing_gradients_[cut]; }
  bool loads_inputs(size_t from, size_t to) const;  // an op between uses an input of the graph

 private:
  using Set = std::vector<uint64_t>;  // a bit for each op, by descending workspace

  void order_bits(const Graph& graph);
  bool find_all_sets(const Graph& graph, size_t most);
  void find_prefixes(const Graph& graph, const std::vector<Seconds>& seconds, size_t most);
  void sum_up(const Graph& graph, const std::vector<std::vector<Seconds>>& seconds);
  void sum_crossing(const Graph& graph);
  void sum_parameters(const Graph& graph);
  bool has(const Set& set, OpIndex op) const;
  void add(Set& set, OpIndex op) const;

  std::vector<OpIndex> order_;     // in which ops are added up, whatever that of the graph
  std::vector<size_t> bit_of_;     // of an op
  std::vector<OpIndex> op_of_;     // of a bit
  std::vector<double> workspace_;  // of a bit
  std::vector<Set> sets_;
  std::vector<size_t> counts_;
  bool complete_ = false, linear_ = false;

  // Sums over the ops before each cut.
  std::vector<std::vector<Seconds>> seconds_;  // by kind, then by cut
  std::vector<Line> saved_, deferred_, crossing_, crossing_gradients_;
  std::vector<double> trainable_, buffers_, summed_;  // of parameters that only one op uses
  std::vector<int> input_users_;
  struct Shared {  // a parameter that several ops use
    double bytes;
    bool trainable, summed;
    int users;
    std::vector<int> users_before;
  };
  std::vector<Shared> shared_;
};

}  // namespace renkei::graph
