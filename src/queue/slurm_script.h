// A job of Slurm that survives its nodes. The script is the job: it brings the data to every node
// once, starts the ranks, and hands Slurm's warning on to them. A job that was warned (its time is
// nearly up, or its nodes are wanted) saves and goes back to the queue; one whose node died is put
// there by Slurm itself. Started again, it resumes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cluster/description.h"

namespace renkei::queue {

struct SlurmJob {
  std::string name = "renkei";
  int nodes = 1;
  int tasks_per_node = 1;
  int threads = 1;        // of each task
  std::string time = {};  // as Slurm writes it: 30, 2:00:00, 1-12
  std::string partition = {};
  std::string mpi = "pmix";     // srun --mpi
  int warning_seconds = 120;    // before the end of its time
  std::string stage_from = {};  // a data set that every node gets; empty: none
  std::string stage_to = {};
  std::vector<std::string> sweep = {};    // "KEY=V1,V2": a job array over all combinations
  std::vector<std::string> options = {};  // further #SBATCH words, such as --gres=gpu:8
  std::string program;                    // renkei itself
  std::vector<std::string> command;       // its words: train --model …
};

// Nodes and tasks of a machine: a task for each device.
void take_layout(SlurmJob& job, const cluster::Description& machine);

// Usage Errors: an empty command, a sweep that is none.
std::string slurm_script(const SlurmJob& job);

}  // namespace renkei::queue
