#pragma once

#include "base/settings.h"
#include "data/loader/loader.h"

namespace renkei::data {

void declare_loader_settings(Settings& settings);

// Memory, threads and what to do with bad samples, from the settings; the seed is run.seed.
LoaderOptions loader_options(const Settings& settings, int rank);

}  // namespace renkei::data
