#include "data/image_folder.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/file.h"
#include "data/image/jpeg.h"

namespace renkei::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLayoutHint =
    "give the folder that has one sub-folder of .jpg files for each class, such as DIR/train";

struct LabelledFile {
  fs::path path;
  int label;
};

bool is_hidden(const fs::path& path) {
  return path.filename().string().starts_with('.');
}

bool is_jpeg(const fs::path& path) {
  std::string extension = path.extension().string();
  for (char& letter : extension)
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return extension == ".jpg" || extension == ".jpeg";
}

// Sorted, because the order in which a file system lists its files is its own affair.
template <typename Wanted>
std::vector<fs::path> list(const fs::path& directory, Wanted wanted) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error))
    if (!is_hidden(entry->path()) && wanted(*entry)) found.push_back(entry->path());
  if (error)
    throw Error(
        ErrorCode::data,
        fmt::format("could not read the image folder {}: {}", directory.string(), error.message()),
        std::string(kLayoutHint));
  std::ranges::sort(found);
  return found;
}

std::vector<fs::path> list_classes(const fs::path& root) {
  auto folders = list(root, [](const fs::directory_entry& entry) {
    std::error_code ignored;
    return entry.is_directory(ignored);
  });
  if (folders.empty())
    throw Error(ErrorCode::data,
                fmt::format("the image folder {} has no class folders", root.string()),
                std::string(kLayoutHint));
  return folders;
}

}  // namespace

MemoryImages load_image_folder(const ImageFolderOptions& options) {
  std::vector<std::string> class_names;
  std::vector<LabelledFile> files;
  for (const fs::path& folder : list_classes(options.root)) {
    const int label = static_cast<int>(class_names.size());
    class_names.push_back(folder.filename().string());
    for (const fs::path& path :
         list(folder, [](const fs::directory_entry& entry) { return is_jpeg(entry.path()); }))
      files.push_back({path, label});
  }
  if (files.empty())
    throw Error(
        ErrorCode::data,
        fmt::format("the class folders of {} hold no .jpg or .jpeg files", options.root.string()),
        std::string(kLayoutHint));

  MemoryImages images(static_cast<int64_t>(files.size()), options.height, options.width,
                      std::move(class_names));
  parallel_for(
      images.count(), options.threads,
      [&](int64_t sample) {
        const auto& [path, label] = files[static_cast<size_t>(sample)];
        const Image image = decode_jpeg(read_file(path), path.string());
        images.set(sample, resize(image, options.width, options.height), label);
      },
      options.progress);
  return images;
}

}  // namespace renkei::data
