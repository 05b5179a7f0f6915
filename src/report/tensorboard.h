#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace renkei::report {

// Scalars that TensorBoard (and what reads its files, such as W&B) can show: point it at the
// directory. Each value is one write, so the file is whole after a crash but for its last record.
class TensorBoardWriter {
 public:
  // Makes the directory when it is missing, and a new file in it.
  explicit TensorBoardWriter(const std::filesystem::path& directory);

  void scalar(std::string_view tag, int64_t step, double value);
  void flush();  // returns when a power failure could no longer take anything away
  const std::filesystem::path& path() const { return file_.path(); }

 private:
  AppendFile file_;
};

// One record of such a file: the first has a file_version, the others a tag and its value.
struct Event {
  double wall_time = 0;
  int64_t step = 0;
  std::string file_version;
  std::string tag;
  float value = 0;
};

// Verifies every checksum. A torn last record is passed over; anything else that is wrong is a data
// Error with the file and the place in it.
std::vector<Event> read_events(const std::filesystem::path& path);

// Takes events of steps from `step` on out of a file; a torn last record goes too.
void cut_events(const std::filesystem::path& path, int64_t step);

}  // namespace renkei::report
