// Trains on gradients that are given: for torch_test.py, which knows what must come out.
//
//   optim_driver DIRECTORY [section.key=value …]
//
// DIRECTORY has `parameters` (lines of offset, count, decays), `values` (raw f32, the flat buffer)
// and `gradients` (raw f32, one flat buffer per step); `result` is written. An epoch has 10 steps.
// Three shards with optimizers of their own stand for three ranks.
#include <cstring>
#include <iostream>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "optim/settings.h"

namespace renkei::optim {
namespace {

std::vector<float> read_floats(const std::filesystem::path& path) {
  const std::string bytes = read_file(path);
  std::vector<float> floats(bytes.size() / sizeof(float));
  std::memcpy(floats.data(), bytes.data(), floats.size() * sizeof(float));
  return floats;
}

std::vector<Parameter> read_parameters(const std::filesystem::path& path) {
  std::istringstream lines(read_file(path));
  std::vector<Parameter> parameters;
  for (Parameter p; lines >> p.offset >> p.count >> p.decays;) parameters.push_back(p);
  return parameters;
}

// One step of all shards.
void train_step(std::vector<Optimizer>& shards, std::span<float> values, const float* gradient,
                const Step& step) {
  std::vector<Norms> norms(shards[0].needs_norms() ? shards[0].parameters() : 0);
  const auto part = [&](const Optimizer& shard) {
    return values.subspan(shard.shard().begin, shard.shard().end - shard.shard().begin);
  };
  for (const Optimizer& shard : shards) {
    const float* const own = gradient + shard.shard().begin;
    if (shard.needs_norms()) shard.norms(shard.shard().begin, part(shard), {&own, 1}, step, norms);
  }
  for (Optimizer& shard : shards) {
    const float* const own = gradient + shard.shard().begin;
    shard.update(shard.shard().begin, part(shard), {&own, 1}, step, norms);
  }
}

void train(const std::filesystem::path& directory, const Settings& settings) {
  std::vector<float> values = read_floats(directory / "values");
  const std::vector<float> gradients = read_floats(directory / "gradients");
  const std::vector<Parameter> parameters = read_parameters(directory / "parameters");
  const size_t total = values.size();
  const RunLength run{.steps_per_epoch = 10,
                      .steps = static_cast<int64_t>(gradients.size() / total)};

  std::vector<Optimizer> shards;
  for (size_t i = 0; i < 3; ++i)
    shards.emplace_back(optimizer_options(settings), parameters,
                        Range{total * i / 3, total * (i + 1) / 3});
  for (int64_t i = 0; i < run.steps; ++i) {
    const float* const gradient = gradients.data() + static_cast<size_t>(i) * total;
    Step step{.number = i + 1,
              .epoch = run.epoch_of(i),
              .learning_rate = learning_rate(schedule_options(settings), run, i)};
    if (const auto limit = clip_norm(settings))
      step.gradient_scale = clip_factor(sum_of_squares({&gradient, 1}, total).norm(), *limit);
    train_step(shards, values, gradient, step);
  }
  write_file_atomically(directory / "result", {reinterpret_cast<const char*>(values.data()),
                                               values.size() * sizeof(float)});
}

}  // namespace
}  // namespace renkei::optim

int main(int argc, char** argv) {
  try {
    renkei::Settings settings;
    renkei::optim::declare_settings(settings);
    for (int i = 2; i < argc; ++i) settings.set_assignment(argv[i], "argument");
    renkei::optim::train(argc > 1 ? argv[1] : ".", settings);
  } catch (const renkei::Error& error) {
    std::cerr << format_for_people(error) << '\n';
    return error.exit_code();
  }
}
