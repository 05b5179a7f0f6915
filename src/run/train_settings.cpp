// The settings of a training run (settings.h), read.
#include "data/loader/loader_settings.h"
#include "optim/settings.h"
#include "run/train_options.h"

namespace renkei::run {

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
                     .vectors_decay = optim::vectors_decay(settings),
                     .skip_not_finite = settings.text("train.not_finite") != "stop"},
          .batch_norm = batch_norm_mode(settings.text("train.batch_norm")),
          .compute = compute_options(settings),
          .roll_back = settings.text("train.not_finite") == "rollback",
          .check_replicas_every = settings.integer("train.check_replicas"),
          .loader = data::loader_options(settings, 0),
          .device_memory = settings.size_unless_auto("train.device_memory").value_or(0),
          .timeout_seconds = timeout};
}

plan::BatchRequest batch_request(const Settings& settings) {
  return {.global = settings.integer_unless_auto("train.batch"),
          .per_device = settings.integer_unless_auto("train.batch_per_device"),
          .micro = settings.integer_unless_auto("train.micro_batch"),
          .accumulation = settings.integer_unless_auto("train.micro_batches")};
}

}  // namespace renkei::run
