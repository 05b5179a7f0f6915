#include "checkpoint/weights.h"

#include <fmt/format.h>

#include <memory>
#include <mutex>
#include <vector>

#include "capture/weights_file.h"
#include "checkpoint/store.h"
#include "comm/collectives/broadcast.h"

namespace renkei::checkpoint {
namespace {

namespace fs = std::filesystem;
using program::DType;

// Readers open files when they are needed, which is no work for several threads at once.
struct Shared {
  explicit Shared(Reader opened) : reader(std::move(opened)) {}
  std::mutex mutex;
  Reader reader;
};

template <typename Number>
void average(std::vector<std::string>& copies, std::span<char> into) {
  const size_t count = into.size() / sizeof(Number);
  auto* mean = reinterpret_cast<Number*>(into.data());
  for (size_t i = 0; i < count; ++i) {
    Number sum = 0;
    for (const std::string& copy : copies) sum += reinterpret_cast<const Number*>(copy.data())[i];
    mean[i] = sum / static_cast<Number>(copies.size());
  }
}

capture::NamedTensors weights_of(Reader opened) {
  const auto shared = std::make_shared<Shared>(std::move(opened));
  capture::NamedTensors tensors;
  for (const auto& [name, entry] : shared->reader.manifest().tensors) {
    if (name.starts_with("optimizer/") || name.starts_with("copy/")) continue;
    std::vector<std::string> copies{name};
    const bool can_average = entry.dtype == DType::f32 || entry.dtype == DType::f64;
    for (std::string next = copy_name(1, name); can_average && shared->reader.has(next);
         next = copy_name(copies.size(), name))
      copies.push_back(next);
    tensors[name] = {
        .dtype = entry.dtype,
        .sizes = entry.sizes,
        .read = [shared, entry = entry, copies](int64_t begin, std::span<char> into) {
          const std::lock_guard lock(shared->mutex);
          const int64_t first = begin / program::bytes_of(entry.dtype);
          const auto read = [&](const std::string& from, std::span<char> place) {
            shared->reader.read(from, {entry.dtype, entry.sizes}, first,
                                std::as_writable_bytes(place));
          };
          if (copies.size() == 1) return read(copies[0], into);
          std::vector<std::string> parts(copies.size(), std::string(into.size(), '\0'));
          for (size_t i = 0; i < copies.size(); ++i) read(copies[i], parts[i]);
          entry.dtype == DType::f32 ? average<float>(parts, into) : average<double>(parts, into);
        }};
  }
  return tensors;
}

// Of a run, or of a directory of checkpoints.
Reader newest_in(const fs::path& path) {
  std::error_code none;
  return open_newest(fs::is_directory(path / "checkpoints", none) ? path / "checkpoints" : path);
}

// A file, or a directory that still has to be looked through.
fs::path file_of(const fs::path& path) {
  std::error_code none;
  const fs::path at_end = path / "model.safetensors";
  return fs::exists(at_end, none) ? at_end : path;
}

bool has_many(const fs::path& path) {
  std::error_code none;
  return fs::is_directory(path, none) && !fs::exists(path / "manifest.json", none);
}

}  // namespace

capture::NamedTensors read_weights(const fs::path& path) {
  const fs::path file = file_of(path);
  std::error_code none;
  if (!fs::is_directory(file, none)) return capture::read_weights_file(file);
  if (has_many(file)) return weights_of(newest_in(file));
  Reader reader(file);
  for (const FileEntry& entry : reader.manifest().files) reader.verify(entry);
  return weights_of(std::move(reader));
}

fs::path find_weights(const fs::path& path, comm::Transport& transport, const comm::Call& call) {
  std::string found;
  if (transport.rank() == 0) {
    const fs::path file = file_of(path);
    found = has_many(file) ? newest_in(file).directory() : file;
  }
  auto length = static_cast<int64_t>(found.size());
  comm::broadcast(transport, std::as_writable_bytes(std::span(&length, 1)), 0, call);
  found.resize(static_cast<size_t>(length));
  comm::broadcast(transport, std::as_writable_bytes(std::span(found)), 0, call);
  return found;
}

}  // namespace renkei::checkpoint
