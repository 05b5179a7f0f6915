#pragma once

#include "base/settings.h"

namespace renkei::cli {

// Every setting of every folder: the one list behind flags, files, help and docs/settings.md.
Settings declare_all_settings();

}  // namespace renkei::cli
