// renkei predict [RUN]: what a network with saved weights says about the samples of a data set.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/ranks.h"
#include "cli/saved_model.h"
#include "data/storage/storage.h"
#include "job/prediction.h"
#include "networks/settings.h"
#include "report/progress.h"
#include "run/device.h"
#include "run/train_options.h"

namespace renkei::cli {
namespace {

struct PredictFlags {
  std::string run;
  std::string output;
  std::string part = "auto";
  int64_t top = 0;
};

job::PredictionFormat format_of(const std::string& file) {
  return file.ends_with(".npy") ? job::PredictionFormat::npy : job::PredictionFormat::json_lines;
}

void check_flags(const Invocation& invocation, const PredictFlags& flags) {
  const bool known =
      flags.output.empty() || flags.output.ends_with(".npy") || flags.output.ends_with(".jsonl");
  if (!known)
    throw Error(ErrorCode::usage, fmt::format("{} does not say what to write", flags.output),
                "choose a name that ends with .jsonl or .npy");
  if (invocation.json && flags.output.empty())
    throw Error(ErrorCode::usage, "--json needs a file for the results",
                "add -o FILE.jsonl, or leave --json out: lines of JSON go to stdout");
}

const data::Dataset& chosen_part(const job::TrainingData& data, const std::string& part) {
  if (part == "held-out" && !data.held_out)
    throw Error(ErrorCode::usage, "the data has no held-out part", "leave --part out");
  return part != "train" && data.held_out ? *data.held_out : *data.train;
}

void predict_as_rank(const Invocation& invocation, RankContext& context,
                     const PredictFlags& flags) {
  const Settings& settings = invocation.settings;
  comm::Transport& transport = context.world.transport();
  run::set_threads(context.threads);
  const capture::OpenNetwork open = capture::open_network(settings);
  const job::PredictionFormat format = format_of(flags.output);
  const bool main_only = format == job::PredictionFormat::npy || flags.top > 0;
  const run::BoundProgram predictor =
      run::make_predictor(open, run::model_options(settings, context.threads, transport),
                          main_only ? capture::Predicted::main : capture::Predicted::all);
  const job::TrainingData data = job::open_training_data(
      settings, job::prediction_needs(predictor, open.network, context.threads));
  const data::Dataset& samples = chosen_part(data, flags.part);
  run::TrainOptions options = run::train_options(settings);
  if (settings.is_auto("data.threads")) options.loader.threads = context.threads;

  const bool first = transport.rank() == 0;
  std::unique_ptr<data::ByteWriter> file;
  if (first && !flags.output.empty()) file = data::open_storage(flags.output)->create(flags.output);
  report::Progress progress(report::progress_on_stderr());
  const bool tells = first && file && !invocation.quiet;
  job::predict(
      predictor, samples, transport,
      {.format = format,
       .top = flags.top,
       .compute = run::compute_options(settings),
       .loader = options.loader,
       .timeout_seconds = settings.seconds("comm.timeout")},
      [&](std::string_view text) {
        if (file)
          file->append(text);
        else
          fmt::print("{}", text);
      },
      [&](int64_t done) {
        if (tells)
          progress.update(
              {.label = "predicting", .done = done, .total = samples.count(), .unit = "samples"});
      });
  if (!first) return;
  if (tells) progress.finish();
  if (!file) return;
  file->finish();
  const nlohmann::json result{{"command", "predict"},
                              {"version", kVersion},
                              {"ranks", transport.size()},
                              {"hosts", context.world.hosts()},
                              {"threads_per_rank", context.threads},
                              {"model", networks::model_name(settings)},
                              {"weights", settings.text("model.weights")},
                              {"samples", samples.count()},
                              {"results", flags.output}};
  if (invocation.json)
    fmt::print("{}\n", result.dump(2));
  else
    fmt::print("{} samples predicted: {}\n", samples.count(), flags.output);
}

}  // namespace

Command make_predict_command() {
  const auto flags = std::make_shared<PredictFlags>();
  return {.name = "predict",
          .summary = "what saved weights say about the samples of a data set, in their order",
          .sections = {"model", "data", "compute", "comm"},
          .add_flags =
              [flags](Arguments& arguments) {
                add_run_argument(arguments, flags->run);
                arguments
                    .option("-o,--output", flags->output,
                            "results go here: FILE.jsonl, a line for each sample, or FILE.npy, a "
                            "row of the main output; otherwise lines go to stdout")
                    .value_name("FILE");
                arguments
                    .option("--part", flags->part,
                            "train or held-out; auto: the held-out part where the data has one")
                    .one_of({"auto", "train", "held-out"});
                arguments
                    .option("--top", flags->top,
                            "only this many classes with the highest scores, best first")
                    .range(int64_t{1}, int64_t{1} << 40);
              },
          .run =
              [flags](Invocation& invocation) {
                check_flags(invocation, *flags);
                use_weights_of_run(invocation.settings, flags->run);
                return run_on_ranks(invocation, [&](RankContext& context) {
                  predict_as_rank(invocation, context, *flags);
                });
              },
          .earlier_settings = [flags] { return settings_of_run(flags->run); }};
}

}  // namespace renkei::cli
