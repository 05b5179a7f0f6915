#include "captured_model.h"

#include <fmt/format.h>

#include "base/error.h"
#include "capture/pt2.h"
#include "comm/communicator.h"
#include "job/run_directory.h"
#include "job/training_data.h"
#include "networks/settings.h"
#include "optim/settings.h"
#include "plan/search.h"
#include "program/effects.h"
#include "rewrite/rewrite.h"
#include "run/settings.h"

namespace renkei::python {

Settings engine_settings(const std::map<std::string, std::string>& given) {
  Settings settings;
  job::declare_run_settings(settings);
  networks::declare_settings(settings);
  job::declare_data_settings(settings);
  run::declare_settings(settings);
  optim::declare_settings(settings);
  rewrite::declare_rewrite_settings(settings);
  run::declare_compute_settings(settings);
  comm::declare_settings(settings);
  plan::declare_settings(settings);
  for (const auto& [name, value] : given) settings.set(name, value, "settings");
  return settings;
}

program::Program read_program(const CapturedModel& captured) {
  program::Program program =
      capture::read_exported_json(captured.text, captured.tied, "the captured model");
  program.name = "the model";
  return program;
}

bool draws_numbers(const program::Program& program) {
  return std::ranges::any_of(program.ops, [](const program::Op& op) { return draws(op); });
}

run::BoundProgram bound(const program::Program& program, const NamedTensors& tensors,
                        const Settings& settings) {
  run::BoundProgram made;
  for (const program::State& state : program.state) {
    const auto found = tensors.find(state.name);
    if (found == tensors.end())
      throw Error(ErrorCode::bug, fmt::format("the model has no tensor {}", state.name));
    made.state.push_back(found->second);
  }
  made.program = rewrite::rewrite(program, rewrite::rewrite_options(settings)).program;
  return made;
}

}  // namespace renkei::python
