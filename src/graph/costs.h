// What ops cost as a function of the number of samples, as measured or by a device's roofline.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace renkei::graph {

// A cost that is a line over the number of samples: seconds or bytes.
struct Line {
  double fixed = 0;
  double per_sample = 0;

  double at(double samples) const { return fixed + per_sample * samples; }
  Line& operator+=(const Line& other) {
    fixed += other.fixed;
    per_sample += other.per_sample;
    return *this;
  }
  friend Line operator+(Line a, const Line& b) { return a += b; }
  friend Line operator-(const Line& a, const Line& b) {
    return {a.fixed - b.fixed, a.per_sample - b.per_sample};
  }
};

// The backward pass in two parts: the gradient of the inputs, which the stage before waits for, and
// that of the parameters, which can wait.
struct Seconds {
  Line forward, backward_input, backward_weight;

  double total_at(double samples) const {
    return forward.at(samples) + backward_input.at(samples) + backward_weight.at(samples);
  }
  Seconds& operator+=(const Seconds& other) {
    forward += other.forward;
    backward_input += other.backward_input;
    backward_weight += other.backward_weight;
    return *this;
  }
  Seconds& operator*=(double factor) {
    for (Line* line : {&forward, &backward_input, &backward_weight})
      *line = {line->fixed * factor, line->per_sample * factor};
    return *this;
  }
  friend Seconds operator-(const Seconds& a, const Seconds& b) {
    return {a.forward - b.forward, a.backward_input - b.backward_input,
            a.backward_weight - b.backward_weight};
  }
};

// The times that stand in the graph.
std::vector<Seconds> op_seconds(const Graph& graph);

// A device for estimates: an op takes as long as its work or its memory traffic, whichever takes
// longer, and never less than a call costs (Williams, Waterman and Patterson, 2009).
struct Roofline {
  double flops_per_second = 1;
  double bytes_per_second = 1;
  double call_seconds = 0;
};

// Writes estimated times into a graph whose ops have flops and traffic. Backward is twice the work
// and traffic for an op with parameters (gradient of the input and of the parameters), else once.
void estimate_seconds(Graph& graph, const Roofline& device);

// Whether estimate_seconds could: each op has flops or traffic.
bool has_work(const Graph& graph);

}  // namespace renkei::graph
