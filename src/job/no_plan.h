#pragma once

#include <string>

#include "plan/search.h"

namespace renkei::job {

// How a command spells what could be more.
struct RemedyFlags {
  std::string memory, devices;
};

// The search found nothing: says what came closest, and the least that would fit.
[[noreturn]] void throw_nothing_fits(const plan::Problem& problem, const plan::StepModel& steps,
                                     const plan::SearchOptions& options,
                                     const plan::SearchResult& result, const RemedyFlags& flags);

}  // namespace renkei::job
