#include <fmt/format.h>
#include <torch/version.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/ranks.h"
#include "cli/train_output.h"
#include "cluster/failure_notes.h"
#include "job/choose_plan.h"
#include "job/network_data.h"
#include "job/run_directory.h"
#include "job/run_timeline.h"
#include "job/session.h"
#include "networks/settings.h"
#include "run/device.h"
#include "run/loaded_libraries.h"
#include "run/make_model.h"
#include "run/memory.h"

namespace renkei::cli {
namespace {

LogLevel log_level(const Settings& settings) {
  const std::string& name = settings.text("run.log_level");
  if (name == "trace") return LogLevel::trace;
  if (name == "debug") return LogLevel::debug;
  if (name == "info") return LogLevel::info;
  if (name == "error") return LogLevel::error;
  return LogLevel::warning;
}

std::string banner(const Settings& settings, const RankContext& context, const plan::Plan& plan) {
  comm::Transport& transport = context.world.transport();
  const int hosts = context.world.hosts();
  return fmt::format(
      "renkei {}: train {} on {} host{} × {} rank{} ({} in all), {} thread{} per rank\n"
      "{}, PyTorch {}, seed {}, first host {}\n"
      "{}\n"
      "run directory {}\n",
      kVersion, settings.text("model.name"), hosts, hosts == 1 ? "" : "s",
      context.world.local_ranks(), context.world.local_ranks() == 1 ? "" : "s", transport.size(),
      context.threads, context.threads == 1 ? "" : "s", comm::mpi_library(), TORCH_VERSION,
      settings.integer("run.seed"), transport.host(0), plan.batch.equation(),
      context.run_directory.string());
}

void train_as_rank(Invocation& invocation, RankContext& context) {
  const Settings& settings = invocation.settings;
  comm::Transport& transport = context.world.transport();
  const bool first = transport.rank() == 0;
  job::Phases phases;
  const std::string warning = run::check_loaded_libraries();
  if (first && !warning.empty()) fmt::print(stderr, "warning: {}\n", warning);
  if (first && settings.text("train.precision") == "bf16" &&
      !rewrite::rewrite_options(settings).bf16)
    fmt::print(stderr,
               "note: this processor has no bf16 instructions, so it computes in fp32, which is "
               "faster here and more exact\n");
  run::install_memory_pools();
  run::set_threads(context.threads);
  const capture::OpenNetwork open = capture::open_network(settings);
  const job::TrainingData data =
      job::open_training_data(settings, job::needs_of(open.network, context.threads));
  phases.end("opening of network and data");
  run::ModelOptions model_options = run::model_options(settings, context.threads);
  model_options.on_demand = true;
  run::Model model =
      run::make_model(open, job::loss_for(settings, open.network, *data.train), model_options);
  comm::Communicator communicator(transport,
                                  comm::communicator_options(settings, transport.size()));
  phases.end("making of the model");
  const auto [plan, predicted] =
      job::choose_plan(settings, {.model = model,
                                  .communicator = communicator,
                                  .compute = run::compute_options(settings),
                                  .threads = context.threads,
                                  .quiet = invocation.quiet});

  phases.end("planning");
  context.run_directory =
      job::make_run_directory(settings, networks::model_name(settings), transport);
  if (first) {
    cluster::tell_supervisor_run_directory(context.run_directory);
    write_file_atomically(context.run_directory / "config.toml", settings.to_toml());
    write_file_atomically(context.run_directory / "plan.json", to_json(plan).dump(2) + "\n");
    if (!invocation.quiet) fmt::print(stderr, "{}", banner(settings, context, plan));
  }
  const Logger log(
      {.level = log_level(settings),
       .rank = transport.rank(),
       .host = transport.host(transport.rank()),
       .file = context.run_directory / fmt::format("logs/rank-{}.log", transport.rank())});
  log.info("training {} on {} ranks, {} threads, {}", settings.text("model.name"), transport.size(),
           context.threads, plan.batch.equation());

  log.info("{}", communicator.topology());
  phases.open(settings, context.run_directory, transport);
  std::unique_ptr<run::Observer> observer = std::make_unique<NoOutput>();
  TrainOutput* output = nullptr;
  if (first) {
    auto writing = std::make_unique<TrainOutput>(context.run_directory, !invocation.quiet);
    output = writing.get();
    observer = std::move(writing);
  }
  const run::TrainJob job{.model = model,
                          .train_data = *data.train,
                          .held_out = data.held_out.get(),
                          .communicator = communicator,
                          .plan = plan,
                          .timeline = phases.file()};
  TrainSummary summary{.model = networks::model_name(settings),
                       .plan = plan,
                       .predicted = predicted,
                       .ranks = transport.size(),
                       .hosts = context.world.hosts(),
                       .threads_per_rank = context.threads,
                       .run_directory = context.run_directory,
                       .result = {}};
  try {
    run::TrainOptions options = run::train_options(settings);
    // The cores of a host are divided over its ranks, for loading too.
    if (settings.is_auto("data.threads")) options.loader.threads = context.threads;
    job::Session session(job, options);
    phases.end("setting up of the ranks");
    job::train(session, *observer);
    phases.skip();
    summary.result = session.result();
    if (settings.boolean("train.save"))
      session.save_weights(context.run_directory / "model.safetensors");
    session.close();
    phases.end("saving of the weights");
  } catch (const Error& error) {
    if (error.code == ErrorCode::communication)
      log.error("{}; the last operations:\n{}", error.message, communicator.journal().text());
    throw;
  }
  log.info("done after {} steps", summary.result.steps);
  phases.close(context.run_directory, transport,
               {.operation = "gathering of the timeline",
                .timeout_seconds = settings.seconds("comm.timeout")});
  if (!first) return;
  output->finish();
  const std::string json = summary_as_json(summary);
  write_file_atomically(context.run_directory / "summary.json", json + "\n");
  fmt::print("{}\n", invocation.json ? json : summary_for_people(summary));
}

}  // namespace

Command make_train_command() {
  return {.name = "train",
          .summary = "train a network on this machine or, under mpirun or srun, on many",
          .sections = {"model", "data", "train", "optim", "compute", "comm", "plan"},
          .run = [](Invocation& invocation) {
            // Mistakes are found before any rank is started, and told once.
            job::expected_plan(invocation.settings, expected_ranks(invocation));
            run::train_options(invocation.settings);
            return run_on_ranks(invocation,
                                [&](RankContext& context) { train_as_rank(invocation, context); });
          }};
}

}  // namespace renkei::cli
