// renkei study: the experiments of three publications again.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/study_measured.h"
#include "cli/study_output.h"
#include "job/planned_network.h"

namespace renkei::cli {
namespace {

struct Options {
  bool simulated_only = false, measured_only = false;
};

study::GraphOf graphs(const Invocation& invocation) {
  return [&invocation](const std::string& model, const auto& changes) {
    Settings settings = invocation.settings;
    settings.set("model.name", model, "study");
    for (const auto& [name, value] : changes) settings.set(name, value, "study");
    return job::estimated_graph(settings);
  };
}

int finish(const Invocation& invocation, const study::Study& study) {
  const std::string& wanted = invocation.settings.text("run.dir");
  const std::filesystem::path directory =
      wanted.empty() ? std::filesystem::path("runs") / ("study-" + study.name)
                     : std::filesystem::path(wanted);
  std::filesystem::create_directories(directory);
  nlohmann::json json = study_for_programs(study);
  json["run_dir"] = directory.string();
  write_file_atomically(directory / "report.html", study_page(study));
  write_file_atomically(directory / "result.json", json.dump(2) + "\n");
  for (const study::Plot& plot : study.plots)
    write_file_atomically(directory / (plot.name + ".svg"), svg(plot));
  if (invocation.json)
    fmt::print("{}\n", json.dump(2));
  else
    fmt::print("{}\n{} has the figures\n", study_for_people(study),
               (directory / "report.html").string());
  return 0;
}

using Simulate = study::Study (*)(const study::GraphOf&);
using Measure = void (*)(study::Study&);

Command study_command(const std::string& name, const std::string& summary, Simulate simulate,
                      Measure measure) {
  const auto options = std::make_shared<Options>();
  return {
      .name = "study " + name,
      .summary = summary,
      .sections = {},
      .add_flags =
          [options](Arguments& arguments) {
            const Argument simulated = arguments.flag("--simulated-only", options->simulated_only,
                                                      "leave out what is measured on this machine");
            arguments.flag("--measured-only", options->measured_only, "leave out what is simulated")
                .excludes(simulated);
          },
      .run =
          [=](Invocation& invocation) {
            study::Study study{.name = name, .title = summary};
            if (!options->measured_only) study = simulate(graphs(invocation));
            if (!options->simulated_only) measure(study);
            return finish(invocation, study);
          }};
}

}  // namespace

Command make_study_flow_command() {
  return study_command("flow", "RaNNC's tutorial on 1 to 16 GPUs: why 3 and 16 are slow",
                       study::simulate_flow, measure_flow);
}

Command make_study_mn1_command() {
  return study_command("mn1", "MN-1: spread of cards, LINPACK and ResNet-50 on up to 1,024 GPUs",
                       study::simulate_mn1, measure_mn1);
}

Command make_study_tsubame3_command() {
  return study_command("tsubame3",
                       "four networks, data sets beyond memory: when is reading the limit?",
                       study::simulate_tsubame3, measure_tsubame3);
}

}  // namespace renkei::cli
