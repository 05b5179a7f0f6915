// renkei evaluate [RUN]: a network with saved weights on a data set.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/version.h"
#include "cli/commands.h"
#include "cli/ranks.h"
#include "cli/saved_model.h"
#include "job/network_data.h"
#include "job/session.h"
#include "networks/settings.h"
#include "report/table.h"
#include "run/device.h"
#include "run/make_model.h"

namespace renkei::cli {
namespace {

void evaluate_as_rank(const Invocation& invocation, RankContext& context) {
  const Settings& settings = invocation.settings;
  comm::Transport& transport = context.world.transport();
  run::set_threads(context.threads);
  const capture::OpenNetwork open = capture::open_network(settings);
  job::DataNeeds needs = job::needs_of(open.network, context.threads);
  needs.training = false;
  const job::TrainingData data = job::open_training_data(settings, needs);
  run::ModelOptions model_options = run::model_options(settings, context.threads, transport);
  model_options.on_demand = true;
  run::Model model =
      run::make_model(open, job::loss_for(settings, open.network, *data.train), model_options);
  comm::Communicator communicator(transport,
                                  comm::communicator_options(settings, transport.size()));
  run::TrainOptions options = run::train_options(settings);
  if (settings.is_auto("data.threads")) options.loader.threads = context.threads;
  // The held-out part where the data has one, as after each epoch of a training.
  const data::Dataset& samples = data.held_out ? *data.held_out : *data.train;
  const int64_t batch = std::min<int64_t>(samples.count(), 64 * transport.size());
  job::Session session({.model = model,
                        .train_data = samples,
                        .held_out = &samples,
                        .communicator = communicator,
                        .plan = plan::data_parallel_plan(
                            plan::infer_batch_sizes({.global = batch}, transport.size()))},
                       options);
  const auto evaluation = session.evaluate();
  session.close();
  if (transport.rank() != 0) return;
  nlohmann::json result{{"command", "evaluate"},
                        {"version", kVersion},
                        {"ranks", transport.size()},
                        {"hosts", context.world.hosts()},
                        {"threads_per_rank", context.threads},
                        {"model", networks::model_name(settings)},
                        {"weights", settings.text("model.weights")},
                        {"samples", evaluation->samples},
                        {"loss", evaluation->loss},
                        {"accuracy", nullptr}};
  if (evaluation->accuracy) result["accuracy"] = *evaluation->accuracy;
  if (invocation.json) {
    fmt::print("{}\n", result.dump(2));
    return;
  }
  report::Table table({{"result"}, {""}});
  table.add_row({"samples", std::to_string(evaluation->samples)});
  table.add_row({"loss", fmt::format("{:.6g}", evaluation->loss)});
  if (evaluation->accuracy)
    table.add_row({"accuracy", fmt::format("{:.1f} %", 100 * *evaluation->accuracy)});
  fmt::print("{}", table.text());
}

}  // namespace

Command make_evaluate_command() {
  const auto run = std::make_shared<std::string>();
  return {.name = "evaluate",
          .summary = "the loss and the accuracy of saved weights on a data set",
          .sections = {"model", "data", "compute", "comm"},
          .add_flags = [run](Arguments& arguments) { add_run_argument(arguments, *run); },
          .run =
              [run](Invocation& invocation) {
                use_weights_of_run(invocation.settings, *run);
                return run_on_ranks(invocation, [&](RankContext& context) {
                  evaluate_as_rank(invocation, context);
                });
              },
          .earlier_settings = [run] { return settings_of_run(*run); }};
}

}  // namespace renkei::cli
