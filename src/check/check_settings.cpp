#include "check/acceptance.h"

namespace renkei::check {

void declare_settings(Settings& settings) {
  settings.declare({.name = "check.tolerance",
                    .kind = SettingKind::real,
                    .default_value = "0.2",
                    .help = "share by which a part may be slower than the median of its kind",
                    .low = 0.01,
                    .high = 0.9});
  settings.declare({.name = "check.sustain",
                    .kind = SettingKind::duration,
                    .default_value = "13min",
                    .help = "how long level 3 keeps all ranks under load",
                    .low = 1,
                    .high = 86400});
  settings.declare({.name = "check.directory",
                    .kind = SettingKind::text,
                    .default_value = "/tmp",
                    .help = "directory of each host whose disk is measured"});
  settings.declare({.name = "check.sysfs",
                    .kind = SettingKind::text,
                    .default_value = "/sys",
                    .help = "where the system tells about its hardware; another tree for tests"});
}

Options options_from(const Settings& settings, int level, int threads) {
  return {.level = level,
          .sysfs = settings.text("check.sysfs"),
          .directory = settings.text("check.directory"),
          .tolerance = settings.real("check.tolerance"),
          .sustain_seconds = settings.seconds("check.sustain"),
          .threads = threads};
}

}  // namespace renkei::check
