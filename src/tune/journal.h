// The trials of a search as JSON lines, so that a search that was ended goes on where it was: the
// first line says what is searched, each further one is a trial.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json_lines.h"
#include "tune/sampler.h"

namespace renkei::tune {

class Journal {
 public:
  // Reads what is there. A usage Error when the file is of another search. `subject` says what is
  // measured: target, ranks, stage.
  Journal(const std::filesystem::path& file, const Space& space, const std::string& subject);

  const std::vector<Trial>& trials() const { return trials_; }
  void append(const Trial& trial);

 private:
  Space space_;
  std::string subject_;
  std::vector<Trial> trials_;
  JsonLinesWriter writer_;
};

}  // namespace renkei::tune
