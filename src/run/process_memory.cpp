#include "run/process_memory.h"

#include <fstream>
#include <limits>
#include <string>
#include <string_view>

namespace renkei::run {

namespace {

// Of a line of the kernel's summary, "Pss:"; 0 where it has none.
int64_t bytes_in_summary(std::string_view name) {
  std::ifstream file("/proc/self/smaps_rollup");
  for (std::string word; file >> word;) {
    if (word == name) {
      int64_t kibibytes = 0;
      file >> kibibytes;
      return kibibytes * 1024;
    }
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

}  // namespace

int64_t process_memory_bytes() {
  return bytes_in_summary("Pss:");
}

int64_t library_bytes() {
  return bytes_in_summary("Pss_File:");
}

}  // namespace renkei::run
