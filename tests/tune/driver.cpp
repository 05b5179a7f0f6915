// tune_functions NAME SEEDS TRIALS tpe|random: the best value of each seed, one a line; then the
// seconds that a suggestion took.
#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "base/clock.h"
#include "tests/tune/functions.h"
#include "tune/sampler.h"

int main(int count, char** words) {
  using namespace renkei;
  if (count != 5) return 2;
  const std::string name = words[1], how = words[4];
  const int seeds = std::atoi(words[2]), trials = std::atoi(words[3]);
  for (const auto& function : tune::test::functions()) {
    if (function.name != name) continue;
    double seconds = 0;
    for (int seed = 0; seed < seeds; ++seed) {
      std::vector<tune::Trial> history;
      double best = 1e300;
      for (int i = 0; i < trials; ++i) {
        const double begin = now_seconds();
        const auto key = static_cast<uint64_t>(seed);
        const tune::Point point = how == "random"
                                      ? tune::random_point(function.space, i, key)
                                      : tune::suggest(function.space, history, i, {.seed = key});
        seconds += now_seconds() - begin;
        history.push_back({.number = i, .point = point, .loss = function.value(point)});
        best = std::min(best, *history.back().loss);
      }
      fmt::print("{}\n", best);
    }
    fmt::print("{}\n", seconds / seeds / trials);
    return 0;
  }
  return 2;
}
