// What the commands for data sets share.
#pragma once

#include <functional>
#include <string>

#include "cli/command.h"
#include "data/parallel.h"
#include "data/source/source.h"
#include "report/progress.h"

namespace renkei::cli {

struct OpenedSources {
  std::unique_ptr<data::Source> train;
  std::unique_ptr<data::Source> held_out;  // null: there is none

  // "train" and, where there is one, "test", with each source.
  void for_each(const std::function<void(const char* name, const data::Source& source)>& use) const;
};

// The names of arrays come from the settings data.input and data.label.
OpenedSources open_sources(const Invocation& invocation, const std::string& path);

int threads_of(const Settings& settings);

// A bar on stderr, unless the command is quiet. `progress` must outlive the result.
data::Progress show_progress(const Invocation& invocation, report::Progress& progress,
                             std::string label);

}  // namespace renkei::cli
