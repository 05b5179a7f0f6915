// A session as front ends drive it.
#include "job/session.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "capture/safetensors.h"
#include "tests/run/layouts.h"

namespace renkei::run {
namespace {

// What a rank of a layout does with its session.
void with_session(const TestCase& test, const Layout& layout,
                  const std::function<void(job::Session& session, Model& model, int rank)>& use) {
  const plan::Plan plan = plan_for(test, layout);
  comm::run_as_threads(plan.ranks(), [&](comm::Transport& transport) {
    Model model = test.make_model();
    comm::Communicator communicator(transport, {});
    job::Session session({.model = model,
                          .train_data = *test.data,
                          .held_out = nullptr,
                          .communicator = communicator,
                          .plan = plan},
                         test.options);
    use(session, model, transport.rank());
    session.close();
    communicator.close();
  });
}

const std::vector<Layout> kLayouts{
    {.replicas = 2, .micro_batches = 1},
    {.stages = 2, .micro_batches = 2},
    {.stages = 2, .replicas = 2, .micro_batches = 2, .sharded = true}};

TEST(Session, GoesBackToWhereItWasSavedAndDoesTheSameAgain) {
  TestCase test = test_case("gpt");
  test.options.update.optimizer = {.kind = optim::OptimizerKind::adamw};
  test.options.steps = 6;
  for (const Layout& layout : kLayouts) {
    SCOPED_TRACE(layout.name());
    with_session(test, layout, [&](job::Session& session, Model&, int rank) {
      for (int i = 0; i < 3; ++i) session.step();
      const job::Session::Snapshot kept = session.save();
      std::vector<double> first, second;
      for (int i = 0; i < 3; ++i) first.push_back(session.step().loss);
      const std::string checksum = session.result().checksum;
      session.restore(kept);
      EXPECT_EQ(session.next_step(), 3);
      for (int i = 0; i < 3; ++i) second.push_back(session.step().loss);
      if (rank != 0) return (void)session.result();
      EXPECT_EQ(first, second);
      EXPECT_EQ(session.result().checksum, checksum);
    });
  }
}

TEST(Session, BeginsAtAnyStep) {
  const TestCase test = test_case("mlp");
  with_session(test, {.stages = 2, .micro_batches = 2}, [](job::Session& session, Model&, int) {
    const double loss = session.step().loss;
    EXPECT_EQ(session.step().step, 1);
    session.go_to(4);  // the first of another epoch: other samples
    const StepReport report = session.step();
    EXPECT_EQ(report.step, 4);
    EXPECT_EQ(report.epoch, 1);
    EXPECT_NE(report.loss, loss);
    EXPECT_TRUE(session.at_end_of_epoch());
  });
}

TEST(Session, WritesTheWeightsOfAllStagesToOneFile) {
  const TestCase test = test_case("gpt");
  const auto file = std::filesystem::temp_directory_path() / "session_test.safetensors";
  for (const Layout& layout : kLayouts) {
    SCOPED_TRACE(layout.name());
    with_session(test, layout, [&](job::Session& session, Model& model, int rank) {
      session.step();
      session.save_weights(file);
      session.collect();
      if (rank != 0) return;
      const capture::NamedTensors written = capture::read_safetensors(file.string());
      const std::vector<NamedPlace> places = named_places(model);
      ASSERT_EQ(written.size(), places.size());
      for (const NamedPlace& named : places) {
        const torch::Tensor expected = model.training.state[named.place].detach().contiguous();
        torch::Tensor read = torch::empty_like(expected);
        const capture::StoredTensor& stored = written.at(named.name);
        ASSERT_EQ(at::IntArrayRef(stored.sizes), expected.sizes()) << named.name;
        stored.read(0, {static_cast<char*>(read.data_ptr()), static_cast<size_t>(read.nbytes())});
        EXPECT_TRUE(torch::equal(read, expected)) << named.name;
      }
    });
  }
  std::filesystem::remove(file);
}

// A network that computes as it likes: control flow on values, of which nothing is cut.
TEST(Session, TrainsAFunctionThatIsNotCut) {
  TestCase test = test_case("mlp");
  const auto train_function = [&](int ranks, int64_t micro_batches) {
    std::vector<double> losses;
    comm::run_as_threads(ranks, [&](comm::Transport& transport) {
      Model model = test.make_model();
      const std::vector<torch::Tensor> state = model.training.state;
      model.training.function = [state](std::span<const torch::Tensor> inputs, int64_t,
                                        ExecutionContext&) {
        torch::Tensor value = inputs[0];
        for (size_t i = 0; i + 1 < state.size(); i += 2) {
          value = torch::linear(value, state[i], state[i + 1]);
          if (value.mean().item<double>() > 0) value = value.relu();
        }
        return std::vector{(value - inputs[1]).square().mean(1).sum()};
      };
      comm::Communicator communicator(transport, {});
      std::vector<double> mine;
      Losses observer(mine);
      job::train({.model = model,
                  .train_data = *test.data,
                  .held_out = nullptr,
                  .communicator = communicator,
                  .plan = plan::data_parallel_plan(plan::infer_batch_sizes(
                      {.global = test.batch, .accumulation = micro_batches}, ranks))},
                 test.options, observer);
      if (transport.rank() == 0) losses = mine;
    });
    return losses;
  };
  const std::vector<double> one = train_function(1, 2), two = train_function(2, 1);
  EXPECT_EQ(one, two);
  test.options.learning_rate.learning_rate = 0;
  EXPECT_NE(train_function(2, 1).back(), two.back()) << "nothing was trained";
}

// A rank of a network made on demand has only what its stages need.
TEST(Session, TensorsOfOtherStagesNeverComeIntoBeing) {
  const TestCase test = test_case("mlp");
  const plan::Plan plan = plan_for(test, {.stages = 2, .micro_batches = 2});
  Trained whole = train_by(test, plan);
  comm::run_as_threads(2, [&](comm::Transport& transport) {
    const auto network = test.make_network();
    Model model = make_model({.network = network},
                             {.objective = test.objective, .target = {.label = false, .size = 24}},
                             {.seed = 1, .rewrite = test.rewrite, .on_demand = true});
    comm::Communicator communicator(transport, {});
    job::Session session({.model = model,
                          .train_data = *test.data,
                          .held_out = nullptr,
                          .communicator = communicator,
                          .plan = plan},
                         test.options);
    size_t in_memory = 0;
    for (size_t i = 0; i < model.training.state.size(); ++i) in_memory += model.has_memory(i);
    EXPECT_LT(in_memory, model.training.state.size());
    EXPECT_GT(in_memory, 0u);
    while (session.next_step() < session.steps()) session.step();
    EXPECT_EQ(session.result().checksum, whole.result.checksum);
    session.close();
  });
}

}  // namespace
}  // namespace renkei::run
