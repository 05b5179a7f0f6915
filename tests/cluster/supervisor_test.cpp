#include "cluster/supervisor.h"

#include <gtest/gtest.h>

#include <csignal>

namespace renkei::cluster {
namespace {

TEST(FindLostRank, ReadsTheWordsOfOpenMpi) {
  const auto lost = find_lost_rank(
      "--------------------------------------------------------------------------\n"
      "mpirun.openmpi noticed that process rank 1 with PID 4711 on node n03 exited on signal 9 "
      "(Killed).\n"
      "--------------------------------------------------------------------------\n");
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->rank, 1);
  EXPECT_EQ(lost->pid, 4711);
  EXPECT_EQ(lost->host, "n03");
  EXPECT_EQ(lost->signal, SIGKILL);
}

TEST(FindLostRank, ReadsTheWordsOfMpich) {
  const auto lost = find_lost_rank(
      "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n"
      "=   PID 815 RUNNING AT n07\n"
      "=   EXIT CODE: 9\n"
      "=   CLEANING UP REMAINING PROCESSES\n");
  ASSERT_TRUE(lost);
  EXPECT_FALSE(lost->rank);
  EXPECT_EQ(lost->pid, 815);
  EXPECT_EQ(lost->host, "n07");
  EXPECT_EQ(lost->signal, SIGKILL);
}

TEST(FindLostRank, FindsNothingInOtherWords) {
  EXPECT_FALSE(find_lost_rank("There are not enough slots available in the system\n"));
  EXPECT_FALSE(find_lost_rank(""));
}

TEST(Supervise, PassesTheExitCodeOfASuccessOn) {
  const auto result = supervise({"/bin/sh", "-c", "exit 0"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_FALSE(result.failure);
}

TEST(Supervise, TellsTheFirstFailureThatARankHasNoted) {
  // Two ranks fail; the note with the earlier time counts, whatever the order of the files.
  const auto result = supervise(
      {"/bin/sh", "-c",
       R"(echo '{"time":2,"code":4,"message":"late","hint":"","rank":0,"host":"a"}' > $RENKEI_SUPERVISOR_DIR/failure-0;
          echo '{"time":1,"code":3,"message":"no such file","hint":"check it","rank":1,"host":"b","step":5}' > $RENKEI_SUPERVISOR_DIR/failure-1;
          echo '"/some/run"' > $RENKEI_SUPERVISOR_DIR/run-directory; exit 17)"});
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.failure->message, "no such file");
  EXPECT_EQ(result.failure->rank, 1);
  EXPECT_EQ(result.failure->host, "b");
  EXPECT_EQ(result.failure->step, 5);
  EXPECT_EQ(result.run_directory, "/some/run");
}

TEST(Supervise, NamesAKilledRankFromTheLaunchersWords) {
  const auto result =
      supervise({"/bin/sh", "-c",
                 R"(echo '{"rank":1,"host":"n03","pid":99}' > $RENKEI_SUPERVISOR_DIR/rank-1;
          printf -- '--------------------------------------------------\n' >&2;
          echo 'mpirun noticed that process rank 1 with PID 0 on node n03 exited on signal 9 (Killed).' >&2;
          exit 137)"});
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_EQ(result.failure->message,
            "rank 1 (host n03, process 99) was ended by signal 9 (Killed)");
}

TEST(Supervise, EndsAJobWhoseRankIsStuckInsideOfACall) {
  // The second rank is this shell, which is stopped; the first one only waits for it.
  const auto result = supervise(
      {"/bin/sh", "-c",
       R"(sleep 60 & echo "{\"rank\":0,\"host\":\"a\",\"pid\":$!,\"call\":\"start-up of MPI\",\"since\":1}" > $RENKEI_SUPERVISOR_DIR/call-0;
          sleep 60 & kill -STOP $!; echo "{\"rank\":1,\"host\":\"b\",\"pid\":$!,\"call\":\"\",\"since\":1}" > $RENKEI_SUPERVISOR_DIR/call-1;
          trap 'kill -9 $(jobs -p); exit 143' TERM; wait)"},
      {}, {.deadline_seconds = 3});
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_EQ(result.failure->rank, 1);
  EXPECT_EQ(result.failure->host, "b");
  EXPECT_NE(result.failure->message.find(
                "was stopped: others have been in the start-up of MPI for more than 3 s"),
            std::string::npos)
      << result.failure->message;
}

TEST(Supervise, ALauncherThatCannotStartIsAFailure) {
  testing::internal::CaptureStderr();
  const auto result = supervise({"/no/such/launcher"});
  const std::string words = testing::internal::GetCapturedStderr();
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_NE(words.find("could not run /no/such/launcher"), std::string::npos) << words;
}

}  // namespace
}  // namespace renkei::cluster
