#include "optim/settings.h"

#include <gtest/gtest.h>

#include "tests/base/thrown_error.h"

namespace renkei::optim {
namespace {

using test::thrown_error;

Settings declared(std::initializer_list<const char*> assignments) {
  Settings settings;
  declare_settings(settings);
  for (const char* assignment : assignments) settings.set_assignment(assignment, "test");
  return settings;
}

TEST(OptimizerSettings, DefaultToPlainSgdWithAConstantRate) {
  const Settings settings = declared({});
  const OptimizerOptions options = optimizer_options(settings);
  EXPECT_EQ(options.kind, OptimizerKind::sgd);
  EXPECT_EQ(options.momentum, 0);
  EXPECT_EQ(options.weight_decay, 0);
  EXPECT_EQ(schedule_options(settings).kind, ScheduleKind::constant);
  EXPECT_EQ(schedule_options(settings).learning_rate, 0.01);
  EXPECT_FALSE(schedule_options(settings).reference_batch);
  EXPECT_FALSE(clip_norm(settings));
  EXPECT_FALSE(loss_scale_options(settings).dynamic);
  EXPECT_EQ(loss_scale_options(settings).scale, 1);
  EXPECT_TRUE(vectors_decay(settings));
}

// Else a configuration that is written and read back would look changed.
TEST(OptimizerSettings, SpellTheirDefaultsAsTheyAreStored) {
  Settings settings = declared({});
  const std::string before = settings.to_toml();
  for (const Setting& setting : settings.declared())
    settings.set(setting.name, setting.default_value, "test");
  EXPECT_EQ(settings.to_toml(), before);
}

TEST(OptimizerSettings, ReachTheOptions) {
  const Settings settings = declared(
      {"optim.name=lamb", "train.weight_decay=0.1", "optim.beta1=0.8", "optim.beta2=0.9",
       "optim.eps=1e-6", "optim.schedule=steps", "optim.milestones=1.5,2", "optim.decay=0.5",
       "optim.lr_batch=256", "optim.warmup_epochs=3", "optim.warmup_from=0.25", "optim.clip=2.5",
       "optim.loss_scale=dynamic", "optim.loss_scale_interval=7", "optim.decay_vectors=false"});
  const OptimizerOptions options = optimizer_options(settings);
  EXPECT_EQ(options.kind, OptimizerKind::lamb);
  EXPECT_EQ(options.weight_decay, 0.1);
  EXPECT_EQ(options.beta1, 0.8);
  EXPECT_EQ(options.beta2, 0.9);
  EXPECT_EQ(options.epsilon, 1e-6);
  const ScheduleOptions schedule = schedule_options(settings);
  EXPECT_EQ(schedule.kind, ScheduleKind::steps);
  EXPECT_EQ(schedule.milestones, (std::vector<double>{1.5, 2}));
  EXPECT_EQ(schedule.decay, 0.5);
  EXPECT_EQ(schedule.reference_batch, 256);
  EXPECT_EQ(schedule.warmup_epochs, 3);
  EXPECT_EQ(schedule.warmup_from, 0.25);
  EXPECT_EQ(clip_norm(settings), 2.5);
  EXPECT_TRUE(loss_scale_options(settings).dynamic);
  EXPECT_EQ(loss_scale_options(settings).scale, 65536);
  EXPECT_EQ(loss_scale_options(settings).growth_interval, 7);
  EXPECT_FALSE(vectors_decay(settings));
}

TEST(OptimizerSettings, KnowTheBetaOfEachOptimizer) {
  EXPECT_EQ(optimizer_options(declared({"optim.name=adamw"})).beta2, 0.999);
  EXPECT_EQ(optimizer_options(declared({"optim.name=rmsprop_warmup"})).beta2, 0.99);
}

TEST(OptimizerSettings, ThatContradictEachOtherAreRefused) {
  const Error error = thrown_error([] { optimizer_options(declared({"optim.nesterov=true"})); });
  EXPECT_EQ(error.code, ErrorCode::usage);
  EXPECT_EQ(error.message, "Nesterov's momentum needs SGD with a momentum");
}

TEST(OptimizerSettings, WithBadListsAndScalesAreRefused) {
  const Error milestones =
      thrown_error([] { schedule_options(declared({"optim.milestones=30,x"})); });
  EXPECT_EQ(milestones.message, "optim.milestones: 'x' is not a number of epochs");
  for (const char* scale : {"optim.loss_scale=big", "optim.loss_scale=0", "optim.loss_scale=-1"})
    EXPECT_EQ(thrown_error([&] { loss_scale_options(declared({scale})); }).code, ErrorCode::usage);
}

}  // namespace
}  // namespace renkei::optim
