// Networks trained in layouts of all kinds. Ranks are threads, each with a network of its own.
#pragma once

#include "comm/communicator.h"
#include "comm/transport/thread_transport.h"
#include "tests/run/networks.h"

namespace renkei::run {

struct Trained {
  std::vector<double> losses;
  std::vector<torch::Tensor> state;  // parameters and buffers
  TrainResult result;
};

struct Layout {
  int stages = 1, replicas = 1, micro_batches = 4, chunks = 1;
  std::string schedule = "1f1b";
  bool recompute = false;
  int segments = 1;                   // in which a stage is recomputed
  std::vector<int> replicas_of = {};  // of each group, where they differ
  bool sharded = false;               // the optimizer's state is divided among the replicas
  int hosts = 1;                      // on which the ranks are, in turn
  int tensor = 1;                     // ranks that compute each op of a replica together
  bool split_batch = false;           // these may divide samples too

  std::string name() const;
};

// The ops of the network in equal parts.
plan::Plan plan_for(const TestCase& test, const Layout& layout);

Trained train_by(const TestCase& test, const plan::Plan& plan,
                 const comm::CommunicatorOptions& communication = {}, int hosts = 1);

// One process with the same micro-batches: those of all replicas.
Trained train_alone(const TestCase& test, const Layout& layout);

// Relative to the largest value of a tensor; 0: bit for bit.
void expect_equal(const Trained& got, const Trained& expected, double tolerance);

}  // namespace renkei::run
