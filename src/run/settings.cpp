#include "run/settings.h"

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
       .default_value = "true",
       .help = "write the weights to model.safetensors in the run directory at the end"});
  settings.declare({.name = "train.checkpoint_every",
                    .kind = SettingKind::text,
                    .default_value = "30min",
                    .help = "when to save what the run can go on from: 30min, 500steps, epoch or "
                            "off",
                    .flag = "--checkpoint-every"});
  settings.declare({.name = "train.keep_checkpoints",
                    .kind = SettingKind::integer,
                    .default_value = "2",
                    .help = "checkpoints that stay; older ones are removed",
                    .low = 1,
                    .high = 1e6});
  settings.declare({.name = "train.keep_best",
                    .kind = SettingKind::choice,
                    .default_value = "none",
                    .help = "keep the best checkpoint too, by this result of the evaluation",
                    .choices = {"none", "loss", "accuracy"}});
  settings.declare({.name = "train.not_finite",
                    .kind = SettingKind::choice,
                    .default_value = "stop",
                    .help =
                        "when a loss or a gradient is not finite: stop; skip the update of that "
                        "step; or rollback: when the loss is not finite, go back to the newest "
                        "checkpoint and leave out the update of that step",
                    .choices = {"stop", "skip", "rollback"}});
  settings.declare({.name = "train.check_replicas",
                    .kind = SettingKind::integer,
                    .default_value = "1000",
                    .help = "after so many steps compare the parameters of replicas by their "
                            "checksums; 0: never",
                    .low = 0,
                    .high = 1e12});
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
  settings.declare({.name = "train.batch_norm",
                    .kind = SettingKind::choice,
                    .default_value = "rank",
                    .help =
                        "statistics of batch normalisation: of each rank, synchronised over all "
                        "ranks, or of each rank without moving averages (last)",
                    .choices = {"rank", "synchronised", "last"}});
}

void declare_compute_settings(Settings& settings) {
  const auto declare_switch = [&](const char* name, const char* help) {
    settings.declare(
        {.name = name, .kind = SettingKind::boolean, .default_value = "true", .help = help});
  };
  declare_switch("compute.winograd", "compute 3 × 3 convolutions by Winograd's method");
  declare_switch("compute.products",
                 "compute products of matrices by oneDNN, not by the BLAS of PyTorch");
  declare_switch("compute.direct_gradients",
                 "let kernels write gradients directly to where they are reduced");
}

}  // namespace renkei::run
