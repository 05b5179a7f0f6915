// Prints programs as JSON for torchvision_test.py and eager_test.py:
//
//   networks_driver network [KEY=VALUE …]                        a network, as it trains
//   networks_driver training OBJECTIVE TARGET [KEY=VALUE …]      with its loss
//   networks_driver evaluation OBJECTIVE TARGET [KEY=VALUE …]    as it is evaluated
//
// OBJECTIVE is what train.loss says, TARGET "label" or the length of a row.
#include <cstdio>
#include <exception>

#include "base/error.h"
#include "networks/loss.h"
#include "networks/network.h"
#include "program/modes.h"
#include "program/program_json.h"

namespace renkei::networks {
namespace {

Objective objective_from(const std::string& word) {
  Settings settings;
  settings.declare({.name = "train.loss", .default_value = word, .help = ""});
  return chosen_objective(settings).value();
}

program::Program program_for(const std::vector<std::string>& words) {
  const std::string& kind = words.at(0);
  Settings settings;
  declare_settings(settings);
  for (size_t i = kind == "network" ? 1 : 3; i < words.size(); ++i)
    settings.set_assignment(words[i], "command line");
  Network network = make_network(settings);
  if (kind == "network") return network.training;
  LossOptions options{.objective = objective_from(words.at(1)),
                      .auxiliary_weight = network.auxiliary_weight};
  if (words.at(2) != "label") options.target = {.label = false, .size = std::stoll(words[2])};
  return kind == "training" ? training_program(std::move(network.training), options)
                            : evaluation_program(program::evaluation(network.training), options);
}

}  // namespace
}  // namespace renkei::networks

int main(int count, char** words) {
  try {
    const std::vector<std::string> rest(words + 1, words + count);
    std::puts(renkei::program::to_json(renkei::networks::program_for(rest)).c_str());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
