#include "data/synth.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "data/image/jpeg.h"
#include "data/shapes.h"

namespace renkei::data {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(std::string_view doing, const fs::path& path, int reason) {
  throw Error(ErrorCode::data,
              fmt::format("could not {} {}: {}", doing, path.string(), std::strerror(reason)),
              "choose a directory that you may write to, on a file system with enough space");
}

// Not write_file_atomically: the whole directory is synced and renamed once, and a sync for each
// of thousands of small files would take minutes.
void write_plainly(const fs::path& path, std::string_view content) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) fail("create", path, errno);
  while (!content.empty()) {
    const ssize_t written = ::write(file, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int reason = errno;
      ::close(file);
      fail("write", path, reason);
    }
    content.remove_prefix(static_cast<size_t>(written));
  }
  // A network file system may report only here that it has no space.
  if (::close(file) != 0) fail("write", path, errno);
}

// A directory that becomes `target` when all is done and vanishes when not.
class PartialDirectory {
 public:
  explicit PartialDirectory(fs::path target)
      : target_(std::move(target)), path_(target_.string() + ".partial") {
    std::error_code error;
    fs::create_directories(path_.parent_path(), error);
    if (error) fail("create", path_.parent_path(), error.value());
    const bool created = fs::create_directory(path_, error);
    if (error && error != std::errc::file_exists) fail("create", path_, error.value());
    // It could belong to a run that is still writing, so it is not ours to delete.
    if (!created)
      throw Error(ErrorCode::usage, fmt::format("{} exists", path_.string()),
                  "an earlier run was interrupted, or another one is still writing; if none is, "
                  "remove it and try again");
  }
  PartialDirectory(const PartialDirectory&) = delete;
  ~PartialDirectory() {
    std::error_code ignored;
    if (!done_) fs::remove_all(path_, ignored);
  }

  const fs::path& path() const { return path_; }

  void commit() {
    sync(path_);
    if (std::rename(path_.c_str(), target_.c_str()) != 0) fail("rename to", target_, errno);
    done_ = true;
    sync(target_.parent_path());
  }

 private:
  static void sync(const fs::path& directory) {
    const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) fail("open", directory, errno);
    const int result = ::syncfs(descriptor);
    const int reason = errno;
    ::close(descriptor);
    if (result != 0) fail("write", directory, reason);
  }

  fs::path target_;
  fs::path path_;
  bool done_ = false;
};

// Absolute and without symbolic links or a slash at the end, so that ".partial" can be appended and
// rename replaces what the user means.
fs::path resolve(const fs::path& directory) {
  std::error_code error;
  fs::path path = fs::weakly_canonical(fs::absolute(directory), error);
  if (error) fail("use", directory, error.value());
  return path.has_filename() ? path : path.parent_path();
}

void refuse_to_overwrite(const fs::path& directory) {
  std::error_code error;
  if (!fs::exists(directory, error)) return;
  if (!fs::is_directory(directory, error))
    throw Error(ErrorCode::usage, fmt::format("{} is not a directory", directory.string()),
                "choose a new directory");
  if (!fs::is_empty(directory, error) || error)
    throw Error(ErrorCode::usage, fmt::format("the directory {} is not empty", directory.string()),
                "choose a new directory, or remove this one first");
}

std::string describe(const SynthOptions& options) {
  const nlohmann::ordered_json description = {{"format", "renkei image folder 1"},
                                              {"content", "drawn shapes"},
                                              {"seed", options.seed},
                                              {"train_images", options.train_images},
                                              {"test_images", options.test_images},
                                              {"size_pixels", options.size_pixels},
                                              {"quality", options.quality},
                                              {"classes", shape_names()}};
  return description.dump(2) + "\n";
}

}  // namespace

void write_synth(const SynthOptions& options) {
  if (options.train_images < 1 || options.test_images < 0)
    throw Error(ErrorCode::usage,
                fmt::format("a synthetic data set of {} training and {} test images",
                            options.train_images, options.test_images),
                "choose at least 1 training image, and 0 or more test images");
  const fs::path directory = resolve(options.directory);
  refuse_to_overwrite(directory);

  PartialDirectory partial(directory);
  for (const char* part : {"train", "test"}) {
    if (part == std::string_view("test") && options.test_images == 0) continue;
    for (const std::string& name : shape_names()) make_directories(partial.path() / part / name);
  }
  parallel_for(
      options.train_images + options.test_images, options.threads,
      [&](int64_t index) {
        const auto [image, label] = draw_shape(options.seed, index, options.size_pixels);
        const char* part = index < options.train_images ? "train" : "test";
        write_plainly(partial.path() / part / shape_names()[static_cast<size_t>(label)] /
                          fmt::format("{:06}.jpg", index),
                      encode_jpeg(image, options.quality));
      },
      options.progress);
  write_plainly(partial.path() / "dataset.json", describe(options));
  partial.commit();
}

}  // namespace renkei::data
