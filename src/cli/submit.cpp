#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/version.h"
#include "cli/commands.h"
#include "queue/process.h"
#include "queue/slurm_script.h"

namespace renkei::cli {
namespace {

struct Flags {
  queue::SlurmJob job;
  std::string cluster, stage;
  int tasks_per_node = 0;
  bool dry_run = false;
};

queue::SlurmJob job_of(const Invocation& invocation, const Flags& flags) {
  queue::SlurmJob job = flags.job;
  if (!flags.cluster.empty()) queue::take_layout(job, cluster::load_description(flags.cluster));
  if (flags.tasks_per_node > 0) job.tasks_per_node = flags.tasks_per_node;
  if (!flags.stage.empty()) {
    const size_t arrow = flags.stage.find("=>");
    if (arrow == std::string::npos)
      throw Error(ErrorCode::usage, fmt::format("'{}' does not say where to", flags.stage),
                  "write --stage 'SOURCE=>DIRECTORY'");
    job.stage_from = flags.stage.substr(0, arrow);
    job.stage_to = flags.stage.substr(arrow + 2);
  }
  job.program = (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "renkei").string();
  job.command = invocation.program;
  if (!job.command.empty() && job.command.front() == "renkei")
    job.command.erase(job.command.begin());
  if (!job.command.empty()) job.name = "renkei-" + job.command.front();
  return job;
}

// "Submitted batch job 42"
int64_t submit_script(const std::string& script) {
  const queue::Output output = queue::ask({"sbatch"}, script);
  if (output.exit_code == 127)
    throw Error(ErrorCode::usage, "there is no sbatch here",
                "run it where Slurm is, or see the script with --dry-run");
  const size_t number = output.text.find("Submitted batch job ");
  if (output.exit_code != 0 || number == std::string::npos)
    throw Error(
        ErrorCode::usage,
        fmt::format("Slurm refused the job: {}", output.text.substr(0, output.text.find('\n'))),
        "see the script with --dry-run");
  return std::stoll(output.text.substr(number + 20));
}

int run(const Invocation& invocation, const Flags& flags) {
  const std::string script = queue::slurm_script(job_of(invocation, flags));
  nlohmann::json id;
  if (!flags.dry_run) id = submit_script(script);
  if (invocation.json)
    fmt::print("{}\n",
               nlohmann::json{
                   {"command", "submit"}, {"version", kVersion}, {"job_id", id}, {"script", script}}
                   .dump(2));
  else if (flags.dry_run)
    fmt::print("{}", script);
  else
    fmt::print("job {} is in the queue; renkei jobs shows it\n", id.get<int64_t>());
  return 0;
}

}  // namespace

Command make_submit_command() {
  const auto flags = std::make_shared<Flags>();
  return {.name = "submit",
          .summary = "put a command into the queue of Slurm; it is requeued and resumes",
          .sections = {},
          .add_flags =
              [flags](Arguments& arguments) {
                arguments.option("--nodes", flags->job.nodes, "nodes of the job")
                    .show_default()
                    .range(1, 1 << 20);
                arguments
                    .option("--tasks-per-node", flags->tasks_per_node,
                            "ranks of a node; by itself 1, or the devices of --cluster")
                    .range(1, 1 << 16);
                arguments
                    .option("--cpus-per-task", flags->job.threads, "cores, and threads, of a rank")
                    .show_default()
                    .range(1, 1 << 16);
                arguments.option("--cluster", flags->cluster,
                                 "a machine or its TOML file: a rank for each device");
                arguments.option("--time", flags->job.time, "time limit, as Slurm writes it");
                arguments.option("--partition", flags->job.partition, "partition of the queue");
                arguments.option("--mpi", flags->job.mpi, "srun --mpi: pmix, or pmi2 for MPICH")
                    .show_default();
                arguments
                    .option("--warn", flags->job.warning_seconds,
                            "seconds before the end at which the ranks save and stop")
                    .show_default()
                    .range(1, 65535);
                arguments.option("--stage", flags->stage,
                                 "SOURCE=>DIRECTORY: a data set that every node gets first");
                arguments
                    .option("--sweep", flags->job.sweep,
                            "KEY=V1,V2: an array of jobs over all combinations")
                    .one_value_each();
                arguments.option("--sbatch", flags->job.options, "a further option, --gres=gpu:8")
                    .one_value_each();
                arguments.flag("--dry-run", flags->dry_run, "print the script and submit nothing");
              },
          .run = [flags](Invocation& invocation) { return run(invocation, *flags); },
          .starts_program = true};
}

}  // namespace renkei::cli
