#include "base/settings.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "tests/base/temporary_directory.h"
#include "tests/base/thrown_error.h"

namespace renkei {
namespace {

using test::TemporaryDirectory;
using test::thrown_error;

Settings example() {
  Settings settings;
  settings.declare({.name = "train.lr",
                    .kind = SettingKind::real,
                    .default_value = "0.01",
                    .help = "learning rate",
                    .low = 0,
                    .high = 10});
  settings.declare({.name = "train.batch",
                    .kind = SettingKind::integer,
                    .default_value = "auto",
                    .help = "samples per step",
                    .low = 1,
                    .flag = "--batch"});
  settings.declare({.name = "train.nesterov",
                    .kind = SettingKind::boolean,
                    .default_value = "false",
                    .help = "look ahead"});
  settings.declare({.name = "comm.timeout",
                    .kind = SettingKind::duration,
                    .default_value = "30s",
                    .help = "patience",
                    .low = 0.1});
  settings.declare({.name = "comm.segment",
                    .kind = SettingKind::size,
                    .default_value = "1MiB",
                    .help = "bytes in one message"});
  settings.declare({.name = "comm.algorithm",
                    .kind = SettingKind::choice,
                    .default_value = "ring",
                    .help = "how to reduce",
                    .choices = {"ring", "tree"}});
  settings.declare(
      {.name = "run.dir", .kind = SettingKind::text, .default_value = "", .help = "where"});
  return settings;
}

TEST(Settings, HaveTheirDefaultsAndKeepWhatIsSet) {
  Settings settings = example();
  EXPECT_EQ(settings.real("train.lr"), 0.01);
  EXPECT_FALSE(settings.integer_unless_auto("train.batch"));
  EXPECT_EQ(settings.seconds("comm.timeout"), 30);
  EXPECT_EQ(settings.size_bytes("comm.segment"), 1 << 20);
  settings.set("train.lr", "0.5", "--set");
  settings.set_assignment("train.batch=64", "--set");
  settings.set_assignment("train.nesterov=true", "--set");
  settings.set_assignment("run.dir=a=b", "--set");
  EXPECT_EQ(settings.real("train.lr"), 0.5);
  EXPECT_EQ(settings.integer_unless_auto("train.batch"), 64);
  EXPECT_TRUE(settings.boolean("train.nesterov"));
  EXPECT_EQ(settings.text("run.dir"), "a=b");
  settings.set("train.batch", "auto", "--set");
  EXPECT_TRUE(settings.is_auto("train.batch"));
}

TEST(Settings, AnUnknownNameGetsTheNearestOne) {
  Settings settings = example();
  const Error error = thrown_error([&] { settings.set("train.btach", "1", "--set"); });
  EXPECT_EQ(error.code, ErrorCode::usage);
  EXPECT_EQ(error.message, "--set: there is no setting 'train.btach'");
  EXPECT_EQ(error.hint, "did you mean train.batch?");
}

TEST(Settings, ANameLikeNoOtherGetsTheListInstead) {
  Settings settings = example();
  const Error error = thrown_error([&] { settings.set("zzzzzzzz", "1", "--set"); });
  EXPECT_EQ(error.hint, "'renkei help settings' lists all settings");
}

TEST(Settings, AValueOutOfRangeNamesTheRange) {
  Settings settings = example();
  const Error error = thrown_error([&] { settings.set("train.lr", "11", "job.toml line 3"); });
  EXPECT_EQ(error.message, "job.toml line 3: train.lr = 11 is out of range");
  EXPECT_EQ(error.hint, "train.lr must be from 0 to 10");
  EXPECT_EQ(settings.real("train.lr"), 0.01) << "a refused value must not stay";
}

TEST(Settings, AValueOfTheWrongKindIsRefused) {
  for (const auto& [name, value] :
       std::initializer_list<std::pair<const char*, const char*>>{{"train.lr", "fast"},
                                                                  {"train.lr", "auto"},
                                                                  {"train.batch", "1.5"},
                                                                  {"train.batch", "64x"},
                                                                  {"train.batch", ""},
                                                                  {"train.nesterov", "yes"},
                                                                  {"comm.timeout", "30 parsecs"},
                                                                  {"comm.segment", "-1"},
                                                                  {"comm.algorithm", "rign"}}) {
    Settings settings = example();
    EXPECT_EQ(thrown_error([&] { settings.set(name, value, "--set"); }).code, ErrorCode::usage)
        << name << " = " << value;
  }
}

TEST(Settings, AMistypedChoiceGetsTheNearestOne) {
  Settings settings = example();
  const Error error = thrown_error([&] { settings.set("comm.algorithm", "rign", "--set"); });
  EXPECT_EQ(error.hint, "did you mean ring? choose one of ring, tree");
}

TEST(Settings, AFileSetsThemAndItsMistakesHaveALine) {
  const TemporaryDirectory directory;
  const auto file = directory / "job.toml";
  write_file_atomically(file, "[train]\nlr = 0.25\nbatch = 32\n[comm]\ntimeout = \"2min\"\n");
  Settings settings = example();
  settings.load_toml(file);
  EXPECT_EQ(settings.real("train.lr"), 0.25);
  EXPECT_EQ(settings.seconds("comm.timeout"), 120);

  write_file_atomically(file, "[train]\nlr = 0.25\nbatsch = 32\n");
  const Error unknown = thrown_error([&] { settings.load_toml(file); });
  EXPECT_NE(unknown.message.find("job.toml line 3: there is no setting 'train.batsch'"),
            std::string::npos)
      << unknown.message;
  EXPECT_EQ(unknown.hint, "did you mean train.batch?");

  write_file_atomically(file, "[train\nlr = 0.25\n");
  EXPECT_EQ(thrown_error([&] { settings.load_toml(file); }).code, ErrorCode::usage);
  write_file_atomically(file, "[train]\nlr = [1, 2]\n");
  EXPECT_EQ(thrown_error([&] { settings.load_toml(file); }).code, ErrorCode::usage);
  EXPECT_EQ(thrown_error([&] { settings.load_toml(directory / "none.toml"); }).code,
            ErrorCode::data);
}

TEST(Settings, TheResolvedFileReadsBackToTheSameValues) {
  const TemporaryDirectory directory;
  Settings settings = example();
  settings.set("train.lr", "1e-3", "--set");
  settings.set("run.dir", "with \"quotes\" and \\", "--set");
  settings.set("comm.segment", "64KiB", "--set");
  const auto file = directory / "config.toml";
  write_file_atomically(file, settings.to_toml());
  Settings again = example();
  again.load_toml(file);
  EXPECT_EQ(again.to_toml(), settings.to_toml());
  EXPECT_EQ(again.text("run.dir"), settings.text("run.dir"));
}

TEST(Settings, ASectionIsOneWhoeverDeclaresItsParts) {
  Settings settings;
  settings.declare({.name = "train.loss", .default_value = "a"});
  settings.declare({.name = "data.source", .default_value = "b"});
  settings.declare({.name = "train.lr", .default_value = "c"});
  const std::string page = settings.to_markdown();
  EXPECT_EQ(page.find("## train"), page.rfind("## train"));
  EXPECT_LT(page.find("train.lr"), page.find("data.source"));
  const TemporaryDirectory directory;
  write_file_atomically(directory / "config.toml", settings.to_toml());
  settings.load_toml(directory / "config.toml");
}

TEST(Settings, TheMarkdownPageShowsEverySetting) {
  const Settings settings = example();
  const std::string page = settings.to_markdown();
  for (const Setting& setting : settings.declared())
    EXPECT_NE(page.find("| `" + setting.name + "` |"), std::string::npos) << setting.name;
  EXPECT_NE(page.find("`--batch`"), std::string::npos);
}

TEST(Settings, ReadingWhatIsNotDeclaredIsABug) {
  const Settings settings = example();
  EXPECT_EQ(thrown_error([&] { settings.real("train.nothing"); }).code, ErrorCode::bug);
  EXPECT_EQ(thrown_error([&] { settings.integer("train.lr"); }).code, ErrorCode::bug);
  Settings twice = example();
  EXPECT_EQ(thrown_error([&] {
              twice.declare({.name = "train.lr", .default_value = "", .help = ""});
            }).code,
            ErrorCode::bug);
}

}  // namespace
}  // namespace renkei
