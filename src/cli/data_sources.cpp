#include "cli/data_sources.h"

#include "data/source/open_source.h"
#include "data/storage/storage_settings.h"

namespace renkei::cli {

void OpenedSources::for_each(
    const std::function<void(const char* name, const data::Source& source)>& use) const {
  use("train", *train);
  if (held_out) use("test", *held_out);
}

int threads_of(const Settings& settings) {
  return static_cast<int>(settings.integer_unless_auto("run.threads").value_or(0));
}

OpenedSources open_sources(const Invocation& invocation, const std::string& path) {
  const Settings& settings = invocation.settings;
  data::OpenOptions options{.path = path,
                            .input = settings.text("data.input"),
                            .label = settings.text("data.label"),
                            .threads = threads_of(settings)};
  const auto storage = data::open_storage(path, data::storage_options(settings));
  OpenedSources opened;
  opened.train = data::open_source(storage, options);
  options.part = data::Part::held_out;
  opened.held_out = data::open_source(storage, options);
  return opened;
}

data::Progress show_progress(const Invocation& invocation, report::Progress& progress,
                             std::string label) {
  if (invocation.quiet) return nullptr;
  return [&progress, label = std::move(label)](int64_t done, int64_t total) {
    progress.update({.label = label, .done = done, .total = total, .unit = "samples"});
  };
}

}  // namespace renkei::cli
