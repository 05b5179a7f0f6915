#include "queue/slurm_script.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace renkei::queue {
namespace {

// As a word of the shell.
std::string quoted(const std::string& word) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("_-./=:,+@%").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::ranges::all_of(word, plain)) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

struct Sweep {
  std::string key;
  std::vector<std::string> values;
};

std::vector<Sweep> parse_sweeps(const std::vector<std::string>& texts) {
  std::vector<Sweep> sweeps;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
      throw Error(ErrorCode::usage, fmt::format("'{}' is no sweep", text),
                  "write a setting and its values: --sweep train.lr=0.1,0.01");
    Sweep sweep{text.substr(0, equals), {}};
    for (size_t begin = equals + 1; begin <= text.size();) {
      const size_t end = std::min(text.find(',', begin), text.size());
      sweep.values.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
    sweeps.push_back(std::move(sweep));
  }
  return sweeps;
}

std::string header(const SlurmJob& job, size_t elements) {
  std::string text = fmt::format(
      "#!/bin/bash\n#SBATCH --job-name={}\n#SBATCH --nodes={}\n#SBATCH --ntasks-per-node={}\n"
      "#SBATCH --cpus-per-task={}\n",
      job.name, job.nodes, job.tasks_per_node, job.threads);
  if (!job.time.empty()) text += fmt::format("#SBATCH --time={}\n", job.time);
  if (!job.partition.empty()) text += fmt::format("#SBATCH --partition={}\n", job.partition);
  if (elements > 0) text += fmt::format("#SBATCH --array=0-{}\n", elements - 1);
  text += fmt::format(
      "#SBATCH --output=%x-{}.out\n#SBATCH --open-mode=append\n#SBATCH --requeue\n"
      "#SBATCH --signal=B:USR1@{}\n",
      elements > 0 ? "%A_%a" : "%j", job.warning_seconds);
  for (const std::string& option : job.options) text += fmt::format("#SBATCH {}\n", option);
  return text;
}

// The settings of this element of the array, as words in `sweep`.
std::string sweep_lines(const std::vector<Sweep>& sweeps) {
  if (sweeps.empty()) return "sweep=()\n";
  std::string text = "index=$SLURM_ARRAY_TASK_ID\nsweep=()\n";
  for (const Sweep& sweep : sweeps) {
    text += "values=(";
    for (size_t i = 0; i < sweep.values.size(); ++i)
      text += (i ? " " : "") + quoted(sweep.values[i]);
    text += fmt::format(")\nsweep+=(--set \"{}=${{values[index % {}]}}\")\nindex=$((index / {}))\n",
                        sweep.key, sweep.values.size(), sweep.values.size());
  }
  return text;
}

std::string staging_lines(const SlurmJob& job) {
  if (job.stage_from.empty()) return "";
  const std::string once =
      "srun --nodes=\"$SLURM_NNODES\" --ntasks=\"$SLURM_NNODES\" "
      "--ntasks-per-node=1 ";
  return fmt::format(
      "\n# The data set, to every node once; taken away at the end.\n{}--mpi={} {} data stage {} "
      "{} "
      "--quiet || exit\ntrap '{}rm -rf -- {}' EXIT\n",
      once, job.mpi, quoted(job.program), quoted(job.stage_from), quoted(job.stage_to), once,
      quoted(job.stage_to));
}

}  // namespace

void take_layout(SlurmJob& job, const cluster::Description& machine) {
  int tasks = 0;
  for (const cluster::Nodes& some : machine.nodes) tasks = std::max(tasks, some.devices);
  job.tasks_per_node = tasks;
}

std::string slurm_script(const SlurmJob& job) {
  if (job.command.empty())
    throw Error(ErrorCode::usage, "submit needs a command",
                "renkei submit --nodes 2 train --model resnet50 …");
  const std::vector<Sweep> sweeps = parse_sweeps(job.sweep);
  size_t elements = sweeps.empty() ? 0 : 1;
  for (const Sweep& sweep : sweeps) elements *= sweep.values.size();
  std::string words;
  for (const std::string& word : job.command) words += " " + quoted(word);
  const bool train = job.command.front() == "train";

  std::string text = header(job, elements);
  text += fmt::format("\nexport OMP_NUM_THREADS={}\n", job.threads);
  text += elements > 0 ? "job=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID\n" : "job=$SLURM_JOB_ID\n";
  text += sweep_lines(sweeps);
  text += staging_lines(job);
  if (train)
    text +=
        "\n# A job that was here before goes on; one that had saved nothing begins again.\n"
        "run=runs/slurm-$job\nwhere=(--run-dir \"$run\")\n"
        "if [ \"${SLURM_RESTART_COUNT:-0}\" -gt 0 ] && [ -d \"$run\" ]; then\n"
        "  if ls \"$run\"/checkpoints/* > /dev/null 2>&1; then where=(\"--resume=$run\")\n"
        "  else mv \"$run\" \"$run-lost-$SLURM_RESTART_COUNT\"; fi\nfi\n";
  else
    text += "\nwhere=()\n";
  text += fmt::format(
      "\n# Slurm warns this shell; the ranks save and end, and the job goes back to the queue.\n"
      "warned=no\nwarn() {{ warned=yes; scancel --signal=USR1 \"$SLURM_JOB_ID\"; }}\n"
      "trap warn USR1\n\n"
      "srun --mpi={} --cpu-bind=cores {}{} \"${{sweep[@]}}\" \"${{where[@]}}\" &\nranks=$!\n"
      "wait \"$ranks\"; code=$?\n"
      "while kill -0 \"$ranks\" 2> /dev/null; do wait \"$ranks\"; code=$?; done\n"
      "if [ \"$warned\" = yes ]; then scontrol requeue \"$SLURM_JOB_ID\"; sleep 60; fi\n"
      "exit \"$code\"\n",
      job.mpi, quoted(job.program), words);
  return text;
}

}  // namespace renkei::queue
