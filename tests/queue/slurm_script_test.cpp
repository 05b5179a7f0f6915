#include "queue/slurm_script.h"

#include "base/error.h"
#include "queue/process.h"

namespace renkei::queue {
namespace {

// Runs a script as Slurm would, with stand-ins for its commands that tell what they were asked.
std::string run_script(const std::string& script, const std::string& environment = "") {
  const std::string stand_ins =
      "srun() { echo srun \"$@\"; }; scontrol() { echo scontrol \"$@\"; }\n"
      "scancel() { echo scancel \"$@\"; }; sleep() { :; }\nSLURM_JOB_ID=7 SLURM_NNODES=2\n";
  return ask({"bash"}, stand_ins + environment + "\n" + script).text;
}

SlurmJob training() {
  return {.name = "renkei-train",
          .nodes = 2,
          .tasks_per_node = 4,
          .program = "/opt/renkei",
          .command = {"train", "--model", "my net.pt2"}};
}

TEST(SlurmScript, StartsTheRanksInARunDirectoryOfTheJob) {
  EXPECT_EQ(run_script(slurm_script(training())),
            "srun --mpi=pmix --cpu-bind=cores /opt/renkei train --model my net.pt2 --run-dir "
            "runs/slurm-7\n");
}

TEST(SlurmScript, SaysWhatSlurmMustKnow) {
  SlurmJob job = training();
  job.time = "2:00:00";
  job.options = {"--gres=gpu:4"};
  const std::string script = slurm_script(job);
  for (const char* line :
       {"#SBATCH --nodes=2\n", "#SBATCH --ntasks-per-node=4\n", "#SBATCH --time=2:00:00\n",
        "#SBATCH --requeue\n", "#SBATCH --signal=B:USR1@120\n", "#SBATCH --gres=gpu:4\n"})
    EXPECT_THAT(script, testing::HasSubstr(line));
}

TEST(SlurmScript, AJobThatComesBackResumesFromItsCheckpoints) {
  const std::string before =
      "cd \"$(mktemp -d)\"; mkdir -p runs/slurm-7/checkpoints/step-5; SLURM_RESTART_COUNT=1";
  EXPECT_THAT(run_script(slurm_script(training()), before),
              testing::HasSubstr("--resume=runs/slurm-7\n"));
  const std::string nothing = "cd \"$(mktemp -d)\"; mkdir -p runs/slurm-7; SLURM_RESTART_COUNT=1";
  EXPECT_THAT(run_script(slurm_script(training()), nothing),
              testing::HasSubstr("--run-dir runs/slurm-7\n"));
}

TEST(SlurmScript, AWarningReachesTheRanksAndRequeuesTheJob) {
  const std::string slow =
      "srun() { kill -USR1 $$; /bin/sleep 0.3; echo saved; }; scancel() { echo cancel \"$@\"; }";
  EXPECT_EQ(run_script(slurm_script(training()), slow),
            "cancel --signal=USR1 7\nsaved\nscontrol requeue 7\n");
}

TEST(SlurmScript, DataComesOnceToEveryNodeAndGoes) {
  SlurmJob job = training();
  job.stage_from = "/archive/set";
  job.stage_to = "/local/set";
  const std::string words = run_script(slurm_script(job));
  const std::string once = "srun --nodes=2 --ntasks=2 --ntasks-per-node=1 ";
  EXPECT_THAT(words, testing::StartsWith(
                         once + "--mpi=pmix /opt/renkei data stage /archive/set /local/set"));
  EXPECT_THAT(words, testing::EndsWith(once + "rm -rf -- /local/set\n"));
}

TEST(SlurmScript, ASweepIsAnArrayOverAllCombinations) {
  SlurmJob job = training();
  job.sweep = {"train.lr=0.1,0.2", "train.momentum=0,0.5,0.9"};
  const std::string script = slurm_script(job);
  EXPECT_THAT(script, testing::HasSubstr("#SBATCH --array=0-5\n"));
  std::set<std::string> seen;
  for (int i = 0; i < 6; ++i) {
    const std::string words =
        run_script(script, fmt::format("SLURM_ARRAY_JOB_ID=7 SLURM_ARRAY_TASK_ID={}", i));
    EXPECT_THAT(words, testing::HasSubstr(fmt::format("--run-dir runs/slurm-7_{}", i)));
    const size_t begin = words.find("--set");
    seen.insert(words.substr(begin, words.find(" --run-dir") - begin));
  }
  EXPECT_EQ(seen.size(), 6);
  EXPECT_TRUE(seen.contains("--set train.lr=0.2 --set train.momentum=0.9"));
}

TEST(SlurmScript, MistakesGetASentence) {
  SlurmJob job = training();
  job.sweep = {"train.lr"};
  EXPECT_THROW(slurm_script(job), Error);
  EXPECT_THROW(slurm_script({}), Error);
}

}  // namespace
}  // namespace renkei::queue
