// Data, pipeline and tensor parallelism in one search. For each number T of devices that compute an
// operation together, the layouts of its values are chosen (shard/solve.h), the program of one of
// these devices is planned like any other, on devices of which each stands for T, and the fastest
// of all is taken.
#pragma once

#include <functional>
#include <memory>

#include "job/planning.h"
#include "program/program.h"
#include "shard/shard.h"

namespace renkei::job {

struct TensorPlans {
  const program::Program* program = nullptr;  // whole; null: operations are not divided
  // What the part of one device costs.
  std::function<graph::Graph(const shard::ShardOptions& part)> make_graph;
  // Whether numbers are tried that nobody asked for: always, or only where nothing else fits.
  enum class Trial { always, if_needed } trial = Trial::always;
};

// What was found with one number of devices.
struct Tried {
  int tensor = 1;
  double seconds = 0;  // of a step; 0: nothing fits
};

struct Searched {
  std::unique_ptr<plan::Problem> problem;
  std::unique_ptr<plan::Objective> objective;
  plan::SearchResult result;  // without a best layout: nothing fits, whatever T
  std::vector<Tried> tried;
};

// `request.graph` is that of the whole program. `steps` must outlive the result.
Searched search_plans(const Settings& settings, const PlanningRequest& request,
                      const TensorPlans& tensor, const plan::StepModel& steps,
                      const plan::SearchOptions& options, bool quiet);

// What is asked for and can't be done: usage Errors.
[[noreturn]] void throw_nothing_divided();
[[noreturn]] void throw_nothing_to_divide_over();

// The graph of one device's part knows which gradients are shares.
void mark_summed(graph::Graph& graph, const std::vector<shard::Slice>& state);

}  // namespace renkei::job
