// A training that goes on from files, on the same ranks and on others.
#include "job/checkpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "tests/base/temporary_directory.h"
#include "tests/run/layouts.h"

namespace renkei::run {
namespace {

struct Outcome {
  std::vector<double> losses;
  std::vector<torch::Tensor> state;
  std::string checksum;
};

// Trains from the newest checkpoint of a directory, if there is one, to `steps`; saves at
// `save_at`.
Outcome go_on(TestCase test, const Layout& layout, const std::filesystem::path& directory,
              std::optional<int64_t> save_at) {
  Outcome outcome;
  const plan::Plan plan = plan_for(test, layout);
  comm::ThreadOptions threads;
  for (int rank = 0; rank < plan.ranks(); ++rank)
    threads.hosts.push_back(fmt::format("host-{}", rank * layout.hosts / plan.ranks()));
  comm::run_as_threads(
      plan.ranks(),
      [&](comm::Transport& transport) {
        const bool resumes = !checkpoint::find_checkpoints(directory).empty();
        // All values have to come from the files.
        Model model = test.make_model(resumes ? 77 + static_cast<uint64_t>(transport.rank()) : 1);
        // Which algorithm is the fastest is measured, and may change from run to run.
        comm::Communicator communicator(transport, {.reproducible = layout.hosts > 1});
        job::Session session({.model = model,
                              .train_data = *test.data,
                              .held_out = test.held_out.get(),
                              .communicator = communicator,
                              .plan = plan},
                             test.options);
        if (resumes) job::load_checkpoint(session, directory);
        std::vector<double> losses;
        while (session.next_step() < save_at.value_or(session.steps()))
          losses.push_back(session.step().loss);
        if (save_at) job::save_checkpoint(session, directory);
        const std::string checksum = session.result().checksum;
        session.collect();
        if (transport.rank() == 0) {
          outcome.losses = losses;
          outcome.checksum = checksum;
          for (const torch::Tensor& tensor : model.training.state)
            outcome.state.push_back(tensor.detach().clone());
        }
        session.close();
      },
      threads);
  return outcome;
}

TestCase case_of(const std::string& name, optim::OptimizerKind kind) {
  TestCase test = test_case(name);
  test.options.update.optimizer = {.kind = kind, .momentum = 0.9};
  test.options.steps = 6;
  return test;
}

TEST(Resume, OnTheSameRanksIsBitwiseAsIfItHadNotStopped) {
  const std::vector<Layout> layouts{
      {.micro_batches = 2},
      {.replicas = 2, .micro_batches = 1},
      {.stages = 2, .micro_batches = 2},
      {.stages = 2, .replicas = 2, .micro_batches = 2, .sharded = true, .hosts = 2},
      {.replicas = 4, .micro_batches = 1, .hosts = 2}};
  for (const char* name : {"gpt", "resnet18"})
    for (const Layout& layout : layouts) {
      // Running statistics differ between replicas; that is all it is here for.
      if (std::string(name) == "resnet18" && (layout.stages > 1 || layout.replicas != 2)) continue;
      SCOPED_TRACE(name + (" " + layout.name()));
      const TestCase test = case_of(name, optim::OptimizerKind::adamw);
      const test::TemporaryDirectory directory;
      const Outcome whole = go_on(test, layout, directory / "none", {});
      go_on(test, layout, directory.path(), 3);
      const Outcome rest = go_on(test, layout, directory.path(), {});
      EXPECT_EQ(rest.losses, std::vector(whole.losses.begin() + 3, whole.losses.end()));
      EXPECT_EQ(rest.checksum, whole.checksum);
      for (size_t i = 0; i < whole.state.size(); ++i)
        EXPECT_TRUE(torch::equal(rest.state[i], whole.state[i])) << i;
    }
}

// With as many micro-batches in all, so that dropout is the same.
TEST(Resume, OnOtherRanksGivesTheSameTraining) {
  const std::vector<Layout> layouts{
      {.micro_batches = 4},
      {.replicas = 2, .micro_batches = 2},
      {.replicas = 4, .micro_batches = 1},
      {.stages = 2, .micro_batches = 4},
      {.stages = 2, .replicas = 2, .micro_batches = 2, .sharded = true, .hosts = 2}};
  const TestCase test = case_of("gpt", optim::OptimizerKind::adamw);
  const test::TemporaryDirectory none;
  const Outcome whole = go_on(test, layouts[0], none.path(), {});
  for (size_t from = 0; from < layouts.size(); ++from)
    for (const size_t further : {1, 3}) {
      const size_t to = (from + further) % layouts.size();
      SCOPED_TRACE(layouts[from].name() + " → " + layouts[to].name());
      const test::TemporaryDirectory directory;
      go_on(test, layouts[from], directory.path(), 3);
      const Outcome rest = go_on(test, layouts[to], directory.path(), {});
      ASSERT_EQ(rest.losses.size(), 3u);
      for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(rest.losses[i] / whole.losses[i + 3], 1, 1e-6);
    }
}

TEST(Resume, OnAnyNumberOfRanksGivesTheSameTraining) {
  const TestCase test = case_of("mlp", optim::OptimizerKind::lamb);
  const test::TemporaryDirectory none;
  const Outcome whole = go_on(test, {.micro_batches = 1}, none.path(), {});
  for (const auto& [from, to] : {std::pair{1, 3}, {3, 2}, {2, 4}, {4, 1}}) {
    SCOPED_TRACE(fmt::format("{} → {}", from, to));
    const test::TemporaryDirectory directory;
    go_on(test, {.replicas = from, .micro_batches = 1}, directory.path(), 3);
    const Outcome rest = go_on(test, {.replicas = to, .micro_batches = 1}, directory.path(), {});
    ASSERT_EQ(rest.losses.size(), 3u);
    for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(rest.losses[i] / whole.losses[i + 3], 1, 1e-6);
  }
}

// All ways from one layout to another: data parallel, pipelines and both, on one to four ranks.
// Slow, so that only `make test-all` asks for it.
TEST(Resume, DISABLED_FromAnyLayoutToAnyOtherGivesTheSameParameters) {
  const std::vector<Layout> layouts{{.micro_batches = 1},
                                    {.replicas = 2, .micro_batches = 1},
                                    {.replicas = 3, .micro_batches = 1},
                                    {.replicas = 4, .micro_batches = 1},
                                    {.stages = 2, .micro_batches = 2},
                                    {.stages = 3, .micro_batches = 2},
                                    {.stages = 4, .micro_batches = 2},
                                    {.stages = 2, .replicas = 2, .micro_batches = 2}};
  const TestCase test = case_of("mlp", optim::OptimizerKind::adamw);
  const test::TemporaryDirectory none;
  const Outcome whole = go_on(test, layouts[0], none.path(), {});
  int ways = 0;
  for (const Layout& from : layouts)
    for (const Layout& to : layouts) {
      if (from.name() == to.name()) continue;
      SCOPED_TRACE(from.name() + " → " + to.name());
      const test::TemporaryDirectory directory;
      go_on(test, from, directory.path(), 3);
      const Outcome rest = go_on(test, to, directory.path(), {});
      for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(rest.losses.at(i) / whole.losses[i + 3], 1, 1e-6);
      for (size_t i = 0; i < whole.state.size(); ++i)
        EXPECT_TRUE(torch::allclose(rest.state[i], whole.state[i], 1e-4, 1e-6)) << i;
      ++ways;
    }
  EXPECT_EQ(ways, 56);
}

TEST(Resume, AnotherBatchIsRefused) {
  TestCase test = case_of("mlp", optim::OptimizerKind::sgd);
  const test::TemporaryDirectory directory;
  go_on(test, {.micro_batches = 1}, directory.path(), 2);
  test.batch = 4;
  EXPECT_THROW(go_on(test, {.micro_batches = 1}, directory.path(), {}), Error);
}

// Memory of a host may fail without a word.
TEST(Replicas, ThatHaveDriftedApartAreFoundAndTheMajorityIsRight) {
  struct Expected {
    int replicas;
    const char* words;
  };
  for (const auto& [replicas, words] :
       {Expected{3, "other parameters than the 2 other replicas"}, {2, "no majority"}}) {
    TestCase test = case_of("mlp", optim::OptimizerKind::sgd);
    test.options.check_replicas_every = 2;
    const Layout layout{.replicas = replicas, .micro_batches = 1, .hosts = replicas};
    const plan::Plan plan = plan_for(test, layout);
    comm::ThreadOptions threads;
    for (int rank = 0; rank < replicas; ++rank)
      threads.hosts.push_back(fmt::format("host-{}", rank));
    std::vector<std::optional<Error>> errors(static_cast<size_t>(replicas));
    comm::run_as_threads(
        replicas,
        [&](comm::Transport& transport) {
          Model model = test.make_model();
          comm::Communicator communicator(transport, {});
          job::Session session({.model = model,
                                .train_data = *test.data,
                                .held_out = nullptr,
                                .communicator = communicator,
                                .plan = plan},
                               test.options);
          session.step();
          session.step();
          session.step();
          if (transport.rank() == 1) session.drift();
          try {
            session.step();
          } catch (const Error& error) {
            errors[static_cast<size_t>(transport.rank())] = error;
          }
          session.close();
        },
        threads);
    for (const auto& error : errors) {
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code, ErrorCode::check);
      EXPECT_THAT(error->message, testing::HasSubstr(words));
      EXPECT_EQ(error->rank, replicas == 3 ? std::optional(1) : std::nullopt);
    }
  }
}

// In the background, while steps go on.
TEST(Checkpoints, AreSavedWhileTheTrainingGoesOn) {
  TestCase test = case_of("mlp", optim::OptimizerKind::sgd);
  test.options.steps = 12;
  const Layout layout{.replicas = 2, .micro_batches = 1};
  const plan::Plan plan = plan_for(test, layout);
  const test::TemporaryDirectory directory;
  for (const bool stopped : {true, false})
    comm::run_as_threads(2, [&](comm::Transport& transport) {
      Model model = test.make_model();
      comm::Communicator communicator(transport, {});
      job::Session session({.model = model,
                            .train_data = *test.data,
                            .held_out = nullptr,
                            .communicator = communicator,
                            .plan = plan},
                           test.options);
      job::Checkpoints checkpoints(session, {.directory = directory.path(),
                                             .every = job::parse_checkpoint_times("2steps"),
                                             .keep = {.last = 2}});
      std::vector<double> losses;
      Losses observer(losses);
      if (!stopped) {
        job::load_checkpoint(session, directory.path());
        EXPECT_EQ(session.next_step(), 5);
      }
      // One rank wants to stop, and all stop.
      const bool done = job::train(session, observer, checkpoints, [&] {
        return stopped && transport.rank() == 1 && session.next_step() == 4;
      });
      EXPECT_EQ(done, !stopped);
      EXPECT_EQ(session.next_step(), stopped ? 5 : 12);
      session.close();
    });
  const auto found = checkpoint::find_checkpoints(directory.path());
  ASSERT_FALSE(found.empty());
  EXPECT_LE(found.size(), 3u);
  EXPECT_EQ(found.front().step, 12);
  EXPECT_TRUE(found.front().has_manifest);
}

TEST(Checkpoints, AFullDiskIsAWarningAndTrainingGoesOn) {
  const TestCase test = case_of("mlp", optim::OptimizerKind::sgd);
  const test::TemporaryDirectory directory;
  write_file_atomically(directory / "file", "in the way");
  std::vector<std::string> warnings;
  comm::run_as_threads(1, [&](comm::Transport& transport) {
    Model model = test.make_model();
    comm::Communicator communicator(transport, {});
    job::Session session({.model = model,
                          .train_data = *test.data,
                          .held_out = nullptr,
                          .communicator = communicator,
                          .plan = plan_for(test, {.micro_batches = 1})},
                         test.options);
    job::Checkpoints checkpoints(
        session, {.directory = directory / "file/checkpoints",
                  .every = job::parse_checkpoint_times("1steps"),
                  .warn = [&](const std::string& text) { warnings.push_back(text); }});
    std::vector<double> losses;
    Losses observer(losses);
    EXPECT_TRUE(job::train(session, observer, checkpoints, [] { return false; }));
    EXPECT_EQ(losses.size(), 6u);
    session.close();
  });
  ASSERT_FALSE(warnings.empty());
  EXPECT_THAT(warnings[0], testing::HasSubstr("training goes on"));
}

TEST(Checkpoints, WhenToSaveIsReadOrRefused) {
  EXPECT_EQ(job::parse_checkpoint_times("30min").seconds, 1800);
  EXPECT_EQ(job::parse_checkpoint_times("500steps").steps, 500);
  EXPECT_TRUE(job::parse_checkpoint_times("epoch").epochs);
  EXPECT_FALSE(job::parse_checkpoint_times("off").seconds);
  for (const char* wrong : {"", "0steps", "-3steps", "steps", "often", "0s", "1.5steps", "nan"})
    EXPECT_THROW(job::parse_checkpoint_times(wrong), Error) << wrong;
}

}  // namespace
}  // namespace renkei::run
