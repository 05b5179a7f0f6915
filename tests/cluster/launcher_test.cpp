#include "cluster/launcher.h"

#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "tests/base/thrown_error.h"

namespace renkei::cluster {
namespace {

using test::thrown_error;

Environment environment(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

TEST(DetectLauncher, FindsNoneInAPlainShell) {
  EXPECT_FALSE(detect_launcher(environment({{"HOME", "/root"}})));
  // An allocation alone (salloc, sbatch) starts no ranks.
  EXPECT_FALSE(detect_launcher(environment({{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "4"}})));
}

TEST(DetectLauncher, KnowsOpenMpiMpichAndSlurm) {
  const auto open_mpi =
      detect_launcher(environment({{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "4"}}));
  ASSERT_TRUE(open_mpi);
  EXPECT_EQ(open_mpi->name, "Open MPI");
  EXPECT_EQ(open_mpi->rank, 3);
  EXPECT_EQ(open_mpi->size, 4);
  EXPECT_EQ(detect_launcher(environment({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}))->name, "MPICH");
  EXPECT_EQ(
      detect_launcher(environment({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"SLURM_STEP_ID", "0"}}))
          ->name,
      "Slurm");
  EXPECT_EQ(detect_launcher(
                environment(
                    {{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_STEP_ID", "0"}}))
                ->size,
            8);
}

TEST(CheckLauncher, AcceptsWhatAgrees) {
  EXPECT_NO_THROW(check_launcher(std::nullopt, 1, "Open MPI 4.1.4", "renkei"));
  EXPECT_NO_THROW(check_launcher(Launcher{"Open MPI", 0, 4}, 4, "Open MPI 4.1.4", "renkei"));
}

TEST(CheckLauncher, AWrongLauncherGetsTheRightCommand) {
  const Error error = thrown_error([] {
    check_launcher(Launcher{"MPICH", 0, 2}, 1, "Open MPI 4.1.4", "build/bin/renkei");
  });
  EXPECT_EQ(error.code, ErrorCode::usage);
  EXPECT_EQ(error.message,
            "an MPICH launcher started 2 ranks, but Open MPI 4.1.4, which this renkei is linked "
            "to, sees only 1");
  EXPECT_NE(error.hint.find(" -n 2 build/bin/renkei"), std::string::npos) << error.hint;

  const Error slurm = thrown_error([] {
    check_launcher(Launcher{"Slurm", 0, 2}, 1, "Open MPI 4.1.4", "renkei");
  });
  EXPECT_EQ(slurm.hint, "start it with: srun --mpi=pmix -n 2 renkei …");
}

TEST(LocalLaunchCommand, EndsWithTheRanksAndTheProgram) {
  const auto command = local_launch_command(3, {"renkei", "train", "--batch", "6"});
  ASSERT_GE(command.size(), 6u);
  const std::vector<std::string> end(command.end() - 6, command.end());
  EXPECT_EQ(end, (std::vector<std::string>{"-n", "3", "renkei", "train", "--batch", "6"}));
}

}  // namespace
}  // namespace renkei::cluster
