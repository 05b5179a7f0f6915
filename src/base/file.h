#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace renkei {

// Writes aside, syncs, renames: after a crash at any moment the file has its old or its new
// content, never a part. Throws a data Error that names the path and the reason.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

std::string read_file(const std::filesystem::path& path);

void make_directories(const std::filesystem::path& path);

// A file that grows at its end. Each append is one write, so that a crash leaves at most the last
// one torn; one that fails (a full disk) is taken back. Throws data Errors.
class AppendFile {
 public:
  explicit AppendFile(std::filesystem::path path);  // created when missing
  ~AppendFile();
  AppendFile(AppendFile&& other) noexcept;
  AppendFile& operator=(AppendFile&&) = delete;

  void append(std::string_view bytes);
  void cut(int64_t size_bytes);  // drops what follows
  void sync();                   // returns when a power failure could no longer take anything away
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int descriptor_;
};

// The data Error of a system call on a file: "could not write a/b: No space left on device", with
// a hint where there is one. `reason` is an errno.
[[noreturn]] void throw_file_error(std::string_view doing, const std::filesystem::path& path,
                                   int reason);

}  // namespace renkei
