#include "queue/runs.h"

#include <fstream>

#include "base/clock.h"
#include "tests/base/temporary_directory.h"

namespace renkei::queue {
namespace {

class Runs : public testing::Test {
 protected:
  void write(const std::string& run, const std::string& file, const std::string& text) {
    std::filesystem::create_directories(directory_ / run);
    std::ofstream(directory_ / run / file) << text;
  }
  std::vector<queue::Run> list(double later = 0) {
    return list_runs(directory_.path(), wall_seconds() + later);
  }
  test::TemporaryDirectory directory_;
};

TEST_F(Runs, StatesStepsAndTimeLeftComeFromTheirFiles) {
  const std::string config = "[train]\nsteps = 100\n";
  const std::string metrics =
      "{\"step\": 1, \"seconds\": 9}\n{\"step\": 2, \"seconds\": 2}\n{\"step\": 3, \"seconds\": "
      "2}\n";
  write("a", "config.toml", config);
  write("a", "metrics.jsonl", metrics);
  write("b", "config.toml", config);
  write("b", "metrics.jsonl", metrics);
  write("b", "failure.json", "{}");
  write("c", "config.toml", "[train]\nepochs = 3\n");
  write("c", "summary.json", "{\"finished\": false}");
  write("d", "config.toml", config);
  write("d", "summary.json", "{}");
  write("no run", "notes.txt", "");
  const auto runs = list();
  ASSERT_EQ(runs.size(), 4);
  EXPECT_EQ(runs[0].state, "running");
  EXPECT_EQ(runs[0].step, 3);
  EXPECT_EQ(runs[0].steps, 100);
  EXPECT_DOUBLE_EQ(*runs[0].seconds_left, 194);
  EXPECT_EQ(runs[1].state, "failed");
  EXPECT_FALSE(runs[1].seconds_left);
  EXPECT_EQ(runs[2].state, "stopped");
  EXPECT_FALSE(runs[2].steps);
  EXPECT_EQ(runs[3].state, "finished");
  EXPECT_EQ(list(3600)[0].state, "interrupted");
}

TEST_F(Runs, JobsOfTheQueueAreAdded) {
  write("slurm-42", "config.toml", "");
  auto runs = list();
  add_queue(runs, "42|renkei-train|RUNNING|n[1-2]\n43|renkei-train|PENDING|\nnonsense\n");
  ASSERT_EQ(runs.size(), 2);
  EXPECT_EQ(runs[0].state, "running");
  EXPECT_EQ(runs[0].where, "n[1-2]");
  EXPECT_EQ(runs[1].name, "job 43 renkei-train");
  EXPECT_EQ(runs[1].state, "pending");
}

}  // namespace
}  // namespace renkei::queue
