// The settings of the optimizers: declared and read here.
#include "optim/settings.h"

#include <charconv>

#include "base/error.h"

namespace renkei::optim {
namespace {

constexpr OptimizerKind kOptimizers[] = {OptimizerKind::sgd,   OptimizerKind::adam,
                                         OptimizerKind::adamw, OptimizerKind::lars,
                                         OptimizerKind::lamb,  OptimizerKind::rmsprop_warmup};
constexpr ScheduleKind kSchedules[] = {ScheduleKind::constant, ScheduleKind::steps,
                                       ScheduleKind::cosine, ScheduleKind::slow_start};

void declare_number(Settings& settings, const char* name, const char* standard, const char* help,
                    double low, double high) {
  settings.declare({.name = name,
                    .kind = SettingKind::real,
                    .default_value = standard,
                    .help = help,
                    .low = low,
                    .high = high});
}

template <class Kind, size_t kCount>
void declare_choice(Settings& settings, const char* name, const char* help,
                    const Kind (&kinds)[kCount]) {
  Setting setting{.name = name,
                  .kind = SettingKind::choice,
                  .default_value = std::string(name_of(kinds[0])),
                  .help = help};
  for (const Kind kind : kinds) setting.choices.emplace_back(name_of(kind));
  settings.declare(std::move(setting));
}

template <class Kind, size_t kCount>
Kind chosen(const Settings& settings, std::string_view name, const Kind (&kinds)[kCount]) {
  for (const Kind kind : kinds)
    if (settings.text(name) == name_of(kind)) return kind;
  throw Error(ErrorCode::bug, fmt::format("{} has a value that is not among its choices", name));
}

std::optional<double> real_unless_auto(const Settings& settings, std::string_view name) {
  if (settings.is_auto(name)) return std::nullopt;
  return settings.real(name);
}

// "30,60,80"
std::vector<double> parse_epochs(std::string_view text) {
  std::vector<double> epochs;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    double epoch = 0;
    const auto [stopped, error] = std::from_chars(text.data() + begin, text.data() + end, epoch);
    if (error != std::errc{} || stopped != text.data() + end || !(epoch >= 0))
      throw Error(ErrorCode::usage,
                  fmt::format("optim.milestones: '{}' is not a number of epochs",
                              text.substr(begin, end - begin)),
                  "write it like optim.milestones=30,60,80");
    epochs.push_back(epoch);
    begin = end + 1;
  }
  return epochs;
}

void declare_schedule(Settings& settings) {
  declare_choice(settings, "optim.schedule", "how the learning rate changes after the warm-up",
                 kSchedules);
  settings.declare({.name = "optim.lr_batch",
                    .kind = SettingKind::integer,
                    .default_value = "auto",
                    .help = "the batch that train.lr is meant for: the rate grows in proportion "
                            "to the batch; by itself, it does not",
                    .low = 1,
                    .high = 1e12});
  declare_number(settings, "optim.warmup_epochs", "0",
                 "epochs in which the learning rate grows to its full size", 0, 1e9);
  declare_number(settings, "optim.warmup_from", "auto",
                 "learning rate at which the warm-up starts; by itself, train.lr if optim.lr_batch "
                 "scales it and 0 otherwise",
                 0, 1e6);
  settings.declare({.name = "optim.milestones",
                    .kind = SettingKind::text,
                    .default_value = "30,60,80",
                    .help = "epochs at which the rate is multiplied by optim.decay (steps)"});
  declare_number(settings, "optim.decay", "0.1", "factor of the rate at each milestone (steps)", 0,
                 1);
  declare_number(settings, "optim.final", "0", "the last rate over the full one (cosine)", 0, 1);
}

}  // namespace

void declare_settings(Settings& settings) {
  declare_number(settings, "train.lr", "0.01", "learning rate", 0, 1e6);
  declare_number(settings, "train.momentum", "0", "momentum (sgd, lars, rmsprop_warmup)", 0, 1);
  declare_number(settings, "train.weight_decay", "0",
                 "weight decay: of the loss (L2), with adamw and lamb of the weights themselves", 0,
                 1e6);

  declare_choice(settings, "optim.name", "how parameters follow their gradients", kOptimizers);
  settings.declare({.name = "optim.nesterov",
                    .kind = SettingKind::boolean,
                    .default_value = "false",
                    .help = "Nesterov's momentum (sgd)"});
  declare_number(settings, "optim.beta1", "0.9",
                 "how much of the mean of the gradients stays in a step (adam, adamw, lamb)", 0,
                 0.9999999);
  declare_number(settings, "optim.beta2", "auto",
                 "how much of the mean of their squares stays in a step; by itself 0.999, for "
                 "rmsprop_warmup 0.99",
                 0, 0.9999999);
  declare_number(settings, "optim.eps", "1e-08",
                 "added to the root of the mean square (adam, adamw, lamb, rmsprop_warmup)", 1e-30,
                 1e6);
  declare_number(settings, "optim.trust", "0.001",
                 "size of a step over the size of the parameter (lars)", 0, 1e6);
  declare_number(settings, "optim.rms_lr", "0.0003", "learning rate of RMSprop (rmsprop_warmup)", 0,
                 1e6);
  declare_number(settings, "optim.rms_centre", "10",
                 "epoch at which half of a step is SGD's (rmsprop_warmup)", 0, 1e9);
  declare_number(settings, "optim.rms_width", "5",
                 "epochs that the change to SGD takes (rmsprop_warmup)", 1e-6, 1e9);
  settings.declare({.name = "optim.decay_vectors",
                    .kind = SettingKind::boolean,
                    .default_value = "true",
                    .help = "weight decay, and rates of their own in lars and lamb, for biases and "
                            "other parameters with one dimension too"});
  declare_schedule(settings);
  declare_number(settings, "optim.clip", "auto",
                 "gradients with a larger norm are scaled down to it; by itself, none are", 1e-30,
                 1e30);
  settings.declare({.name = "optim.loss_scale",
                    .kind = SettingKind::text,
                    .default_value = "1",
                    .help = "the loss is multiplied by this number before backward; dynamic looks "
                            "for the largest one without overflow, from 65536 on"});
  settings.declare({.name = "optim.loss_scale_interval",
                    .kind = SettingKind::integer,
                    .default_value = "2000",
                    .help = "steps without overflow after which a dynamic loss scale is doubled",
                    .low = 1,
                    .high = 1e15});
}

OptimizerOptions optimizer_options(const Settings& settings) {
  OptimizerOptions options{.kind = chosen(settings, "optim.name", kOptimizers),
                           .weight_decay = settings.real("train.weight_decay"),
                           .momentum = settings.real("train.momentum"),
                           .nesterov = settings.boolean("optim.nesterov"),
                           .beta1 = settings.real("optim.beta1"),
                           .epsilon = settings.real("optim.eps"),
                           .trust = settings.real("optim.trust"),
                           .rms_learning_rate = settings.real("optim.rms_lr"),
                           .rms_centre_epoch = settings.real("optim.rms_centre"),
                           .rms_width_epochs = settings.real("optim.rms_width")};
  options.beta2 = real_unless_auto(settings, "optim.beta2")
                      .value_or(options.kind == OptimizerKind::rmsprop_warmup ? 0.99 : 0.999);
  check(options);
  return options;
}

ScheduleOptions schedule_options(const Settings& settings) {
  return {.kind = chosen(settings, "optim.schedule", kSchedules),
          .learning_rate = settings.real("train.lr"),
          .reference_batch = settings.integer_unless_auto("optim.lr_batch"),
          .warmup_epochs = settings.real("optim.warmup_epochs"),
          .warmup_from = real_unless_auto(settings, "optim.warmup_from"),
          .milestones = parse_epochs(settings.text("optim.milestones")),
          .decay = settings.real("optim.decay"),
          .final_fraction = settings.real("optim.final")};
}

LossScaleOptions loss_scale_options(const Settings& settings) {
  const std::string& text = settings.text("optim.loss_scale");
  LossScaleOptions options{.growth_interval = settings.integer("optim.loss_scale_interval")};
  if (text == "dynamic") {
    options.dynamic = true;
    options.scale = 65536;
    return options;
  }
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, options.scale);
  if (error != std::errc{} || stopped != end || !(options.scale > 0))
    throw Error(ErrorCode::usage, fmt::format("'{}' is not a loss scale", text),
                "optim.loss_scale is a number over 0, or dynamic");
  return options;
}

std::optional<double> clip_norm(const Settings& settings) {
  return real_unless_auto(settings, "optim.clip");
}

bool vectors_decay(const Settings& settings) {
  return settings.boolean("optim.decay_vectors");
}

}  // namespace renkei::optim
