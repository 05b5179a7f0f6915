// What Python hands over: an exported program, as text, and the tensors of the model.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/settings.h"
#include "run/model.h"

namespace renkei::python {

using NamedTensors = std::map<std::string, torch::Tensor>;

struct CapturedModel {
  std::string text;  // of the exported program
  std::vector<std::pair<std::string, std::string>>
      tied;            // further names of a tensor, and its first
  NamedTensors state;  // the model's own tensors
};

// The settings that a training has, with those that Python gives.
Settings engine_settings(const std::map<std::string, std::string>& given);

program::Program read_program(const CapturedModel& captured);
// Whether it draws random numbers, as dropout does.
bool draws_numbers(const program::Program& program);
// With the model's own tensors; rewritten as the settings say.
run::BoundProgram bound(const program::Program& program, const NamedTensors& tensors,
                        const Settings& settings);

}  // namespace renkei::python
