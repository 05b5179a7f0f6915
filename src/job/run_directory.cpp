#include "job/run_directory.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <ctime>

#include "base/error.h"
#include "base/file.h"
#include "comm/collectives/broadcast.h"

namespace renkei::job {
namespace {

namespace fs = std::filesystem;

fs::path choose(const Settings& settings, const std::string& label) {
  if (const std::string& wanted = settings.text("run.dir"); !wanted.empty()) {
    if (fs::exists(fs::path(wanted) / "config.toml"))
      throw Error(ErrorCode::usage, fmt::format("{} already holds a run", wanted),
                  "choose another --run-dir, or remove that one");
    return wanted;
  }
  const std::string name =
      fmt::format("{:%Y%m%d-%H%M%S}-{}", fmt::localtime(std::time(nullptr)), label);
  fs::path directory = fs::path("runs") / name;
  for (int again = 2; fs::exists(directory); ++again)
    directory = fs::path("runs") / fmt::format("{}-{}", name, again);
  return directory;
}

}  // namespace

void declare_run_settings(Settings& settings) {
  settings.declare({.name = "run.dir",
                    .kind = SettingKind::text,
                    .default_value = "",
                    .help = "directory of the run; by itself runs/DATE-TIME-MODEL",
                    .flag = "--run-dir"});
  settings.declare({.name = "run.seed",
                    .kind = SettingKind::integer,
                    .default_value = "1",
                    .help = "seed of everything random",
                    .low = 0,
                    .high = 9.2e18,
                    .flag = "--seed"});
  settings.declare({.name = "run.log_level",
                    .kind = SettingKind::choice,
                    .default_value = "warning",
                    .help = "the least important messages that stderr shows",
                    .choices = {"trace", "debug", "info", "warning", "error"}});
}

fs::path make_run_directory(const Settings& settings, const std::string& label,
                            comm::Transport& transport) {
  // All ranks must agree on a name with a time in it, so rank 0 chooses.
  std::array<char, 4096> name{};
  if (transport.rank() == 0) {
    const fs::path directory = choose(settings, label);
    make_directories(directory / "logs");
    const std::string text = fs::absolute(directory).lexically_normal();
    if (text.size() >= name.size())
      throw Error(ErrorCode::usage, "the path of the run directory is too long");
    std::memcpy(name.data(), text.data(), text.size());
  }
  comm::broadcast(transport, std::span<std::byte>(std::as_writable_bytes(std::span(name))), 0,
                  {.operation = "broadcast of the run directory"});
  fs::path directory = name.data();
  make_directories(directory / "logs");  // on other hosts, should the file system not be shared
  return directory;
}

}  // namespace renkei::job
