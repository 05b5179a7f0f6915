// The settings of a training run: declared and read here. Those of the update, train.lr among them,
// are declared in optim/settings.cpp.
#include "data/loader/loader_settings.h"
#include "optim/settings.h"
#include "run/trainer.h"

namespace renkei::run {

void declare_settings(Settings& settings) {
  const auto batch_part = [&](const char* name, const char* help, const char* flag = "") {
    settings.declare({.name = name,
                      .kind = SettingKind::integer,
                      .default_value = "auto",
                      .help = help,
                      .low = 1,
                      .high = 1e12,
                      .flag = flag});
  };
  batch_part("train.batch", "samples per step over all ranks", "--batch");
  batch_part("train.batch_per_device", "samples per step and rank, instead of train.batch",
             "--batch-per-device");
  batch_part("train.micro_batch", "samples that go through the network at once");
  batch_part("train.micro_batches", "micro-batches per step and rank; their gradients add up",
             "--micro-batches");
  settings.declare({.name = "train.plan",
                    .kind = SettingKind::text,
                    .default_value = "data",
                    .help = "who computes what: data (each rank the whole network), auto (measured "
                            "and searched), or a plan file",
                    .flag = "--plan"});
  settings.declare({.name = "train.device_memory",
                    .kind = SettingKind::size,
                    .default_value = "auto",
                    .help = "memory that a rank may hold in training, as if it had a device of "
                            "that size; by itself without limit",
                    .low = 1,
                    .high = 1e18,
                    .flag = "--device-memory"});
  settings.declare(
      {.name = "train.save",
       .kind = SettingKind::boolean,
       .default_value = "false",
       .help = "write the weights to model.safetensors in the run directory at the end"});
  settings.declare({.name = "train.epochs",
                    .kind = SettingKind::integer,
                    .default_value = "1",
                    .help = "passes over the data set",
                    .low = 1,
                    .high = 1e9,
                    .flag = "--epochs"});
  settings.declare({.name = "train.steps",
                    .kind = SettingKind::integer,
                    .default_value = "auto",
                    .help = "steps to train, instead of whole epochs",
                    .low = 1,
                    .high = 1e15,
                    .flag = "--steps"});
  settings.declare({.name = "train.timeline",
                    .kind = SettingKind::choice,
                    .default_value = "off",
                    .help = "write timeline.json, for chrome://tracing or Perfetto: every task of "
                            "every rank",
                    .choices = {"off", "tasks"},
                    .flag = "--timeline"});
  settings.declare({.name = "train.batch_norm",
                    .kind = SettingKind::choice,
                    .default_value = "rank",
                    .help =
                        "statistics of batch normalisation: of each rank, synchronised over all "
                        "ranks, or of each rank without moving averages (last)",
                    .choices = {"rank", "synchronised", "last"}});
}

namespace {

BatchNormMode batch_norm_mode(const std::string& name) {
  if (name == "synchronised") return BatchNormMode::synchronised;
  if (name == "last") return BatchNormMode::last;
  return BatchNormMode::rank;
}

}  // namespace

TrainOptions train_options(const Settings& settings) {
  const double timeout = settings.seconds("comm.timeout");
  return {.epochs = settings.integer("train.epochs"),
          .steps = settings.integer_unless_auto("train.steps"),
          .seed = static_cast<uint64_t>(settings.integer("run.seed")),
          .learning_rate = optim::schedule_options(settings),
          .update = {.bucket_bytes =
                         static_cast<size_t>(settings.size_unless_auto("comm.bucket").value_or(0)),
                     .overlap = settings.boolean("comm.overlap"),
                     .timeout_seconds = timeout,
                     .optimizer = optim::optimizer_options(settings),
                     .clip_norm = optim::clip_norm(settings),
                     .loss_scale = optim::loss_scale_options(settings),
                     .vectors_decay = optim::vectors_decay(settings)},
          .batch_norm = batch_norm_mode(settings.text("train.batch_norm")),
          .compute = compute_options(settings),
          .loader = data::loader_options(settings, 0),
          .device_memory = settings.size_unless_auto("train.device_memory").value_or(0),
          .timeout_seconds = timeout,
          .keep_events = settings.text("train.timeline") == "tasks"};
}

plan::BatchRequest batch_request(const Settings& settings) {
  return {.global = settings.integer_unless_auto("train.batch"),
          .per_device = settings.integer_unless_auto("train.batch_per_device"),
          .micro = settings.integer_unless_auto("train.micro_batch"),
          .accumulation = settings.integer_unless_auto("train.micro_batches")};
}

}  // namespace renkei::run
