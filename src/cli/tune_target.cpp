#include "cli/tune_target.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/units.h"
#include "dense/grid.h"
#include "tune/command_trial.h"

namespace renkei::cli {
namespace {

using tune::Kind;
using tune::Parameter;

std::string program() {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "renkei").string();
}

Parameter choice(std::string name, std::vector<std::string> choices) {
  return {.name = std::move(name), .kind = Kind::choice, .choices = std::move(choices)};
}

Parameter whole(std::string name, double low, double high) {
  return {.name = std::move(name),
          .kind = Kind::integer,
          .logarithmic = true,
          .low = low,
          .high = high};
}

// Every parameter is a setting: --set name={name}.
void add_settings(TuneTarget& target) {
  for (const Parameter& parameter : target.space.parameters)
    target.command.insert(target.command.end(),
                          {"--set", fmt::format("{0}={{{0}}}", parameter.name)});
}

TuneTarget linpack(const TuneRequest& request) {
  TuneTarget target{.name = "linpack", .maximise = true, .unit = "GFLOP/s", .field = "gflops"};
  target.space.parameters = {whole("linpack.nb", 8, 512)};
  const dense::Grid usual = dense::squarest_grid(request.ranks);
  target.usual = {{"linpack.nb", 128}};
  if (request.ranks > 1) {
    // P x Q = ranks holds by construction: only divisors are drawn, and Q follows.
    std::vector<std::string> rows;
    for (int p = 1; p <= request.ranks; ++p)
      if (request.ranks % p == 0) rows.push_back(std::to_string(p));
    target.usual["linpack.p"] =
        static_cast<double>(std::ranges::find(rows, std::to_string(usual.p)) - rows.begin());
    target.usual["linpack.mapping"] = 0;
    target.space.parameters.push_back(choice("linpack.p", rows));
    target.space.parameters.push_back(choice("linpack.mapping", {"row", "column"}));
  }
  target.command = {program(), "linpack", "--json", "--quiet", "-n", std::to_string(request.ranks)};
  return target;
}

TuneTarget collectives(const TuneRequest& request) {
  TuneTarget target{.name = "collectives", .unit = "us", .field = "rows.0.time_us"};
  target.space.parameters = {
      choice("comm.shared_memory", {"true", "false"}),
      choice("comm.algorithm", {"automatic", "ring", "halving_doubling", "tree", "torus"})};
  Parameter segment = whole("comm.segment", 4096, 4 << 20);
  segment.when = "comm.algorithm";
  segment.values = {"ring", "halving_doubling", "tree", "torus"};
  target.space.parameters.push_back(segment);
  target.usual = {{"comm.shared_memory", 0}, {"comm.algorithm", 0}};
  target.command = {
      program(), "bench", "collectives", "--json", "--quiet", "-n", std::to_string(request.ranks)};
  if (std::ranges::count(request.words, "--sizes") == 0)
    target.command.insert(target.command.end(), {"--sizes", "1MiB"});
  return target;
}

TuneTarget train(const TuneRequest& request) {
  TuneTarget target{
      .name = "train", .maximise = true, .unit = "samples/s", .field = "samples_per_second"};
  target.space.parameters = {choice("train.micro_batches", {"1", "2", "4"}),
                             choice("comm.overlap", {"true", "false"}),
                             whole("comm.bucket", 64 << 10, 64 << 20)};
  target.command = {program(), "train", "--json", "--quiet", "-n", std::to_string(request.ranks)};
  if (std::ranges::count(request.words, "--steps") == 0)
    target.command.insert(target.command.end(), {"--steps", "20"});
  return target;
}

}  // namespace

TuneTarget make_tune_target(const TuneRequest& request) {
  TuneTarget target;
  if (request.target == "linpack") target = linpack(request);
  if (request.target == "collectives") target = collectives(request);
  if (request.target == "train") target = train(request);
  if (!request.target.empty()) {
    // Settings of the user's own choice come in place of the usual ones.
    if (!request.parameters.empty()) target.space = {}, target.usual = {};
  } else {
    target.name = "command";
    target.maximise = request.maximise;
  }
  for (const std::string& text : request.parameters)
    target.space.parameters.push_back(tune::parse_parameter(text, target.space));
  for (const std::string& text : request.constraints)
    target.space.constraints.push_back(tune::parse_constraint(text, target.space));
  if (target.space.parameters.empty())
    throw Error(ErrorCode::usage, "there is nothing to choose",
                "name a parameter: --parameter x=real:0:1 -- COMMAND {x}");
  target.command.insert(target.command.end(), request.words.begin(), request.words.end());
  if (!request.target.empty()) add_settings(target);
  return target;
}

std::optional<double> measure_target(const TuneTarget& target, const tune::Point& point,
                                     double seconds) {
  std::map<std::string, std::string> texts = tune::texts_of(target.space, point);
  std::vector<std::string> words = tune::fill_in(target.command, texts);
  // A setting whose parameter does not apply is left out.
  for (size_t i = 0; i + 1 < words.size();)
    if (words[i] == "--set" && words[i + 1].ends_with("}"))
      words.erase(words.begin() + static_cast<std::ptrdiff_t>(i),
                  words.begin() + static_cast<std::ptrdiff_t>(i) + 2);
    else
      ++i;
  const tune::CommandResult done = tune::run_command(words, seconds);
  if (done.stopped || done.exit_code != 0) return std::nullopt;
  std::optional<double> value;
  if (target.field.empty()) {
    value = tune::last_number(done.output);
  } else {
    const auto json = nlohmann::json::parse(done.output, nullptr, false);
    std::string path = "/" + target.field;
    std::ranges::replace(path, '.', '/');
    const nlohmann::json::json_pointer pointer(path);
    if (!json.is_discarded() && json.contains(pointer) && json.at(pointer).is_number())
      value = json.at(pointer).get<double>();
  }
  if (value && target.maximise) value = -*value;
  return value;
}

std::string best_as_toml(const TuneTarget& target, const tune::Point& point) {
  const auto quoted = [&](const std::string& name, const std::string& text) {
    const Parameter& parameter = *target.space.find(name);
    const bool number = parameter.kind != Kind::choice || text == "true" || text == "false" ||
                        text.find_first_not_of("0123456789") == std::string::npos;
    return number ? text : "\"" + text + "\"";
  };
  std::map<std::string, std::string> sections;
  for (const auto& [name, text] : tune::texts_of(target.space, point)) {
    const size_t dot = name.find('.');
    const std::string section = dot == std::string::npos ? "best" : name.substr(0, dot);
    sections[section] += fmt::format(
        "{} = {}\n", dot == std::string::npos ? name : name.substr(dot + 1), quoted(name, text));
  }
  std::string toml;
  for (const auto& [section, lines] : sections)
    toml += fmt::format("{}[{}]\n{}", toml.empty() ? "" : "\n", section, lines);
  return toml;
}

}  // namespace renkei::cli
