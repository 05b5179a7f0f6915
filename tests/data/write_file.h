#pragma once

#include <filesystem>
#include <fstream>
#include <string_view>

namespace renkei::data {

// Writes a file, and the directories above it.
inline void write_test_file(const std::filesystem::path& path, std::string_view content) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

}  // namespace renkei::data
