#include <algorithm>
#include <fstream>

#include "comm/collectives/all_gather.h"
#include "dense/linpack.h"

namespace renkei::dense {
namespace {

double available_memory_bytes() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("MemAvailable:")) return 1024 * std::stod(line.substr(13));
  return 0;
}

}  // namespace

double linpack_flops(double n) {
  return 2.0 / 3 * n * n * n + 1.5 * n * n;
}

void declare_linpack_settings(Settings& settings) {
  settings.declare({.name = "linpack.n",
                    .kind = SettingKind::integer,
                    .default_value = "auto",
                    .help = "order of the matrix; by itself, what linpack.memory has room for",
                    .low = 1,
                    .high = 1 << 30,
                    .flag = "--order"});
  settings.declare({.name = "linpack.nb",
                    .kind = SettingKind::integer,
                    .default_value = "128",
                    .help = "rows and columns of a block",
                    .low = 1,
                    .high = 4096,
                    .flag = "--nb"});
  settings.declare({.name = "linpack.p",
                    .kind = SettingKind::integer,
                    .default_value = "auto",
                    .help = "rows of the grid of ranks; by itself, as square as can be",
                    .low = 1,
                    .high = 1 << 20,
                    .flag = "--p"});
  settings.declare({.name = "linpack.q",
                    .kind = SettingKind::integer,
                    .default_value = "auto",
                    .help = "columns of the grid of ranks",
                    .low = 1,
                    .high = 1 << 20,
                    .flag = "--q"});
  settings.declare({.name = "linpack.mapping",
                    .kind = SettingKind::choice,
                    .default_value = "row",
                    .help = "order in which ranks fill the grid",
                    .choices = {"row", "column"}});
  settings.declare({.name = "linpack.memory",
                    .kind = SettingKind::real,
                    .default_value = "0.8",
                    .help = "share of the free memory that the matrix takes while n is auto",
                    .low = 0.0001,
                    .high = 0.95});
  settings.declare({.name = "linpack.damage",
                    .kind = SettingKind::boolean,
                    .default_value = "false",
                    .help = "spoil an entry of the solution, to see that the check finds it"});
}

LinpackOptions linpack_options(const Settings& settings, int ranks, double memory_bytes) {
  LinpackOptions options{
      .block = static_cast<int>(settings.integer("linpack.nb")),
      .grid = choose_grid(ranks,
                          static_cast<int>(settings.integer_unless_auto("linpack.p").value_or(0)),
                          static_cast<int>(settings.integer_unless_auto("linpack.q").value_or(0))),
      .column_major = settings.text("linpack.mapping") == "column",
      .damage = settings.boolean("linpack.damage")};
  options.n = settings.integer_unless_auto("linpack.n")
                  .value_or(order_for_memory(memory_bytes, options.block));
  return options;
}

double memory_for_matrix(const Settings& settings, comm::Transport& transport) {
  int local = 0;
  for (int rank = 0; rank < transport.size(); ++rank)
    local += transport.host(rank) == transport.host(transport.rank());
  const double mine = available_memory_bytes() / local;
  std::vector<double> all(static_cast<size_t>(transport.size()));
  comm::all_gather(transport, std::span(&mine, 1), std::span(all),
                   {.operation = "exchange of free memory"});
  return *std::ranges::min_element(all) * transport.size() * settings.real("linpack.memory");
}

}  // namespace renkei::dense
