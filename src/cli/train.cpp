#include <fmt/format.h>
#include <torch/version.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/ranks.h"
#include "cli/stop_signals.h"
#include "cli/train_output.h"
#include "cluster/failure_notes.h"
#include "job/checkpoints.h"
#include "job/choose_plan.h"
#include "job/faults.h"
#include "job/network_data.h"
#include "job/resume.h"
#include "job/run_directory.h"
#include "job/run_timeline.h"
#include "job/session.h"
#include "networks/settings.h"
#include "report/page_data.h"
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

// What the flags of this command say, beside settings.
struct TrainFlags {
  std::string resume = kNotGiven;                 // empty: the newest run
  std::optional<std::filesystem::path> run = {};  // that goes on
  bool no_save = false;
  int restarts = 0;

  static constexpr const char* kNotGiven = "-";
};

job::CheckpointOptions checkpoint_options(const Settings& settings,
                                          const std::filesystem::path& run_directory, bool speaks) {
  const std::string& best = settings.text("train.keep_best");
  return {.directory = run_directory / "checkpoints",
          .every = job::parse_checkpoint_times(settings.text("train.checkpoint_every")),
          .keep = {.last = static_cast<int>(settings.integer("train.keep_checkpoints")),
                   .best_by = best == "none" ? "" : best},
          .settings = settings.to_toml(),
          .warn =
              [speaks](const std::string& text) {
                if (speaks) fmt::print(stderr, "warning: {}\n", text);
              },
          .timeout_seconds = settings.seconds("comm.timeout")};
}

// From the newest checkpoint that is whole; without one, from the beginning, and then it is false.
bool go_on(job::Session& session, const Settings& settings, const std::filesystem::path& run,
           const job::CheckpointOptions& options) {
  comm::Transport& transport = session.communicator().transport();
  const comm::Call call{.operation = "loading of a checkpoint",
                        .timeout_seconds = settings.seconds("comm.timeout")};
  auto reader = checkpoint::open_newest(options.directory, transport, call, options.warn);
  if (reader) session.restore(*reader);
  if (transport.rank() != 0) return reader.has_value();
  if (!reader) options.warn(fmt::format("{} has no checkpoint: it begins anew", run.string()));
  job::cut_records(run, session.next_step());
  checkpoint::remove_after(options.directory, session.next_step());
  std::error_code none;
  std::filesystem::remove(run / "failure.json", none);
  return reader.has_value();
}

// After a step that can't be done, as `failure` says: from the newest checkpoint, and without the
// update of that step. All ranks together.
void roll_back(job::Session& session, const Settings& settings, const std::filesystem::path& run,
               const job::CheckpointOptions& options, const Error& failure) {
  const int64_t step = *failure.step;
  if (!session.leave_out(step) || !go_on(session, settings, run, options)) throw failure;
  options.warn(fmt::format("{}; back to step {}, and the update of step {} is left out",
                           failure.message, session.next_step(), step));
}

// What --set fault.… asks for, once: a step may come again. `next` is the first that was not
// reached yet.
void rehearse(const job::Faults& faults, job::Session& session, int64_t& next) {
  const int64_t step = session.next_step();
  if (step < next) return;
  next = step + 1;
  faults.before_step(step);
  if (faults.nan_before(step)) session.spoil();
  if (faults.drifts_before(step)) session.drift();
  if (faults.corrupts_gradient_before(step)) session.corrupt_gradients();
}

// The causes are those of the steps whose slices were kept; the time is that of all.
std::optional<timeline::StepTimes> mean_step_by_cause(
    const report::RunReport& report, const std::vector<timeline::StepTimes>& steps) {
  if (report.attribution.ranks.empty()) return {};
  timeline::StepTimes mean = report.attribution.ranks[0];
  const double all = timeline::mean_of(steps, report::kWarmUpSteps).seconds;
  for (double& part : mean.by_category) part *= all / mean.seconds;
  mean.seconds = all;
  return mean;
}

void train_as_rank(Invocation& invocation, RankContext& context, const TrainFlags& flags) {
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
  run::ModelOptions model_options = run::model_options(settings, context.threads, transport);
  model_options.on_demand = true;
  const networks::LossOptions loss = job::loss_for(settings, open.network, *data.train);
  run::Model model = run::make_model(open, loss, model_options);
  comm::Communicator communicator(transport,
                                  comm::communicator_options(settings, transport.size()));
  phases.end("making of the model");
  const auto [plan, predicted] = job::choose_plan(
      flags.run ? job::planning_settings(settings, *flags.run, transport.size()) : settings,
      {.model = model,
       .program = capture::programs_of(open, loss).training,
       .communicator = communicator,
       .compute = run::compute_options(settings),
       .make_part =
           [&](const shard::ShardOptions& part) {
             run::ModelOptions options = model_options;
             options.shard = part;
             return run::make_model(open, loss, options);
           },
       .threads = context.threads,
       .quiet = invocation.quiet});

  if (plan.tensor > 1) {
    model_options.shard = job::part_of_rank(settings, plan, transport.rank());
    model = run::make_model(open, loss, model_options);
  }
  phases.end("planning");
  context.run_directory =
      flags.run ? *flags.run
                : job::make_run_directory(settings, networks::model_name(settings), transport);
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
  const run::TrainJob job{.model = model,
                          .train_data = *data.train,
                          .held_out = data.held_out.get(),
                          .communicator = communicator,
                          .plan = plan,
                          .timeline = phases.file()};
  std::unique_ptr<run::Observer> observer = std::make_unique<NoOutput>();
  TrainOutput* output = nullptr;
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
    options.record_operations = settings.text("train.timeline") == "ops";
    // The cores of a host are divided over its ranks, for loading too.
    if (settings.is_auto("data.threads")) options.loader.threads = context.threads;
    job::Session session(job, options);
    const job::Faults faults(settings, transport.rank(), job::Faults::earlier_starts());
    job::CheckpointOptions saving = checkpoint_options(settings, context.run_directory, first);
    saving.disk_is_full = [&](int64_t step) { return faults.disk_full_at(step); };
    if (flags.run) go_on(session, settings, *flags.run, saving);
    phases.end("setting up of the ranks");
    const StopSignals signals;
    int64_t next_fault = 0;
    for (bool ends = false; !ends;) {
      // Anew each time: what was taken back of metrics is not written to yet.
      if (first) {
        auto writing = std::make_unique<TrainOutput>(context.run_directory, !invocation.quiet);
        output = writing.get();
        observer = std::move(writing);
      }
      job::Checkpoints checkpoints(session, saving);
      try {
        summary.finished = job::train(session, *observer, checkpoints, [&] {
          rehearse(faults, session, next_fault);
          return signals.arrived() != 0;
        });
        ends = true;
      } catch (const Error& error) {
        if (!options.roll_back || !error.step || error.code != ErrorCode::check) throw;
        checkpoints.finish();
        observer = std::make_unique<NoOutput>();
        roll_back(session, settings, context.run_directory, saving, error);
      }
    }
    phases.skip();
    summary.result = session.result();
    summary.result.steps = session.next_step();
    if (summary.finished && settings.boolean("train.save")) {
      summary.weights = context.run_directory / "model.safetensors";
      session.save_weights(summary.weights);
    }
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
  std::optional<report::RunReport> report;
  if (phases.file()) {
    report = report::read_run(context.run_directory);
    summary.mean_step = mean_step_by_cause(*report, summary.result.step_times);
    summary.verdict = report->verdict.sentence;
    summary.report = context.run_directory / "report.html";
  }
  const std::string json = summary_as_json(summary);
  write_file_atomically(context.run_directory / "summary.json", json + "\n");
  if (report) {
    report->set_summary(nlohmann::json::parse(json));
    write_file_atomically(summary.report, report::page_of(std::span(&*report, 1)));
  }
  fmt::print("{}\n", invocation.json ? json : summary_for_people(summary));
}

}  // namespace

Command make_train_command() {
  const auto flags = std::make_shared<TrainFlags>();
  return {.name = "train",
          .summary = "train a network on this machine or, under mpirun or srun, on many",
          .sections = {"model", "data", "train", "optim", "compute", "comm", "plan"},
          .add_flags =
              [flags](Arguments& arguments) {
                arguments
                    .option("--resume", flags->resume,
                            "go on with a run, by default the newest in runs/, from its last "
                            "checkpoint")
                    .optional_value()
                    .value_name("[RUN]");
                arguments
                    .option("--restarts", flags->restarts,
                            "start again this often, from the last checkpoint, when a rank is lost")
                    .range(0, 1 << 20);
                arguments.flag("--no-save", flags->no_save, "do not write model.safetensors");
              },
          .run =
              [flags](Invocation& invocation) {
                Settings& settings = invocation.settings;
                invocation.restarts = flags->restarts;
                if (flags->no_save) settings.set("train.save", "false", "--no-save");
                if (flags->run) {
                  job::take_over(settings, *flags->run);
                  if (invocation.ranks == 0 && !has_launcher())
                    invocation.ranks = job::ranks_of_run(*flags->run);
                }
                // Mistakes are found before any rank is started, and told once.
                const int ranks = expected_ranks(invocation);
                job::expected_plan(
                    flags->run ? job::planning_settings(settings, *flags->run, ranks) : settings,
                    ranks);
                run::train_options(settings);
                job::parse_checkpoint_times(settings.text("train.checkpoint_every"));
                job::Faults(settings, 0, 0);
                return run_on_ranks(invocation, [&](RankContext& context) {
                  train_as_rank(invocation, context, *flags);
                });
              },
          .earlier_settings = [flags]() -> std::filesystem::path {
            if (flags->resume == TrainFlags::kNotGiven) return {};
            flags->run = job::find_run(flags->resume);
            return *flags->run / "config.toml";
          }};
}

}  // namespace renkei::cli
