#include "data/source/folder_source.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "data/parallel.h"

namespace renkei::data {
namespace {

constexpr std::string_view kLayoutHint =
    "give the folder that has one sub-folder of .jpg files for each class, such as DIR/train";

struct ImageFile {
  int32_t label;
  std::string name;  // without the folder
  int64_t size;
};

bool is_image(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return false;
  std::string extension(name.substr(dot));
  for (char& letter : extension)
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  constexpr std::array<std::string_view, 3> kImages{".jpg", ".jpeg", ".png"};
  return std::ranges::count(kImages, extension) > 0;
}

class FolderSource : public Source {
 public:
  FolderSource(std::shared_ptr<const Storage> storage, std::string root,
               std::vector<std::string> class_names, std::vector<ImageFile> files)
      : storage_(std::move(storage)),
        root_(std::move(root)),
        class_names_(std::move(class_names)),
        files_(std::move(files)) {}

  std::string_view format() const override { return "image folder"; }
  int64_t count() const override { return static_cast<int64_t>(files_.size()); }
  const std::vector<StoredField>& fields() const override { return fields_; }
  int64_t label(int64_t sample) const override { return at(sample).label; }
  int64_t files() const override { return count(); }
  std::vector<std::string> class_names() const override { return class_names_; }
  std::string describe(int64_t sample) const override { return file_name(sample); }

  Location locate(int64_t sample, int64_t) const override {
    return {.file = sample, .offset = 0, .length = at(sample).size};
  }
  std::string file_name(int64_t file) const override {
    const ImageFile& found = at(file);
    return join_path(join_path(root_, class_names_[static_cast<size_t>(found.label)]), found.name);
  }
  std::shared_ptr<const ByteFile> file(int64_t file) const override {
    return storage_->open(file_name(file));
  }

 private:
  const ImageFile& at(int64_t sample) const {
    check_sample(sample);
    return files_[static_cast<size_t>(sample)];
  }

  std::shared_ptr<const Storage> storage_;
  std::string root_;
  std::vector<std::string> class_names_;
  std::vector<ImageFile> files_;
  std::vector<StoredField> fields_ = image_fields("image file", "name of the folder");
};

}  // namespace

std::unique_ptr<Source> open_folder_source(std::shared_ptr<const Storage> storage,
                                           const FolderSourceOptions& options) {
  std::vector<std::string> class_names;
  for (const StorageEntry& entry : storage->list(options.root))
    if (entry.directory) class_names.push_back(entry.name);
  if (class_names.empty())
    throw Error(ErrorCode::data,
                fmt::format("the image folder {} has no class folders", options.root),
                std::string(kLayoutHint));

  std::vector<std::vector<ImageFile>> found(class_names.size());
  parallel_for(static_cast<int64_t>(found.size()), options.threads, [&](int64_t i) {
    const auto label = static_cast<size_t>(i);
    for (StorageEntry& entry : storage->list(join_path(options.root, class_names[label])))
      if (!entry.directory && is_image(entry.name))
        found[label].push_back({static_cast<int32_t>(i), std::move(entry.name), entry.size});
  });
  std::vector<ImageFile> files;
  for (auto& part : found) std::ranges::move(part, std::back_inserter(files));
  if (files.empty())
    throw Error(
        ErrorCode::data,
        fmt::format("the class folders of {} hold no .jpg, .jpeg or .png files", options.root),
        std::string(kLayoutHint));
  return std::make_unique<FolderSource>(std::move(storage), options.root, std::move(class_names),
                                        std::move(files));
}

}  // namespace renkei::data
