#include "data/source/array_source.h"

#include <algorithm>

#include "data/source/array_choice.h"
#include "data/source/npy.h"
#include "data/source/zip.h"

namespace renkei::data {
namespace {

struct Array {
  std::shared_ptr<const ByteFile> file;
  int64_t offset = 0;  // of the first number
  ElementType type;
  std::vector<int64_t> shape;
};

class ArraySource : public Source {
 public:
  ArraySource(std::string_view format, ChosenArrays<Array> chosen)
      : format_(format),
        count_(chosen.count),
        fields_(std::move(chosen.fields)),
        arrays_(std::move(chosen.arrays)) {
    if (chosen.label) {
      const Array& label = *chosen.label;
      files_.push_back(label.file);
      labels_ = labels_from(
          label.type, label.file->read(label.offset, ArrayLayout{label.type, label.shape}.bytes()),
          label.file->name());
    }
    for (const Array& array : arrays_) {
      if (std::ranges::count(files_, array.file) == 0) files_.push_back(array.file);
      file_of_.push_back(std::ranges::find(files_, array.file) - files_.begin());
      lengths_.push_back(ArrayLayout{array.type, array.shape}.bytes() / count_);
    }
  }

  std::string_view format() const override { return format_; }
  int64_t count() const override { return count_; }
  const std::vector<StoredField>& fields() const override { return fields_; }
  int64_t records() const override { return static_cast<int64_t>(arrays_.size()); }
  int64_t files() const override { return static_cast<int64_t>(files_.size()); }
  std::string file_name(int64_t file) const override { return this->file(file)->name(); }
  std::shared_ptr<const ByteFile> file(int64_t file) const override {
    return files_[static_cast<size_t>(file)];
  }

  int64_t label(int64_t sample) const override {
    check_sample(sample);
    return labels_.empty() ? kNoLabel : labels_[static_cast<size_t>(sample)];
  }
  Location locate(int64_t sample, int64_t record) const override {
    check_sample(sample);
    const auto place = static_cast<size_t>(record);
    return {.file = file_of_[place],
            .offset = arrays_[place].offset + sample * lengths_[place],
            .length = lengths_[place]};
  }

 private:
  std::string_view format_;
  int64_t count_;
  std::vector<StoredField> fields_;
  std::vector<Array> arrays_;
  std::vector<std::shared_ptr<const ByteFile>> files_;
  std::vector<int64_t> file_of_, lengths_;  // of each array, and of a sample in it
  std::vector<int64_t> labels_;
};

Array open_array(std::shared_ptr<const ByteFile> file, int64_t offset, int64_t length) {
  const NpyHeader header = read_npy_header(*file, offset, length);
  return {std::move(file), offset + header.data_offset, header.type, header.shape};
}

Array open_array(const Storage& storage, const std::string& path) {
  auto file = storage.open(path);
  const int64_t size = file->size();
  return open_array(std::move(file), 0, size);
}

Array open_member(const std::shared_ptr<const ByteFile>& file, const ZipMember& member) {
  if (!member.deflated) return open_array(file, member.offset, member.size);
  constexpr int64_t kHead = 4096;  // headers are shorter
  auto unpacked = open_zip_member(file, member);
  const NpyHeader header =
      parse_npy_head(read_zip_head(*file, member, kHead), unpacked->name(), member.size);
  return {std::move(unpacked), header.data_offset, header.type, header.shape};
}

// "dir/x_train.npy" -> "dir/y_train.npy", "images.npy" -> "labels.npy"; empty where there is none.
std::string label_file_of(const Storage& storage, const std::string& path) {
  const size_t base = path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1;
  const std::string directory = path.substr(0, base), name = path.substr(base);
  std::string other;
  if (name.starts_with('x') || name.starts_with('X')) other = "y" + name.substr(1);
  if (const size_t at = name.find("images"); at != std::string::npos)
    other = std::string(name).replace(at, 6, "labels");
  return !other.empty() && storage.is_file(directory + other) ? directory + other : "";
}

std::string stem_of(std::string_view name) {
  return std::string(name.substr(0, name.size() - std::string_view(".npy").size()));
}

}  // namespace

std::vector<int64_t> labels_from(ElementType type, std::string_view bytes, std::string_view name) {
  std::vector<int64_t> labels(bytes.size() / static_cast<size_t>(type.bytes));
  for (size_t i = 0; i < labels.size(); ++i) {
    labels[i] = integer_at(type, bytes, static_cast<int64_t>(i));
    if (labels[i] < 0 || labels[i] > INT32_MAX)
      throw Error(ErrorCode::data,
                  fmt::format("{}: the label of sample {} is {}", name, i, labels[i]),
                  "number the classes from 0");
  }
  return labels;
}

std::unique_ptr<Source> open_npy_source(const Storage& storage, const ArraySourceOptions& options) {
  if (options.part == Part::held_out) return nullptr;
  const ArrayNames names{
      options.path, options.label == "auto" ? label_file_of(storage, options.path) : options.label};
  return std::make_unique<ArraySource>(
      "npy", open_chosen_arrays(names, options.path, [&](const std::string& path) {
        return open_array(storage, path);
      }));
}

std::unique_ptr<Source> open_npz_source(const Storage& storage, const ArraySourceOptions& options) {
  const auto file = storage.open(options.path);
  const std::vector<ZipMember> members = read_zip_directory(*file);
  std::vector<std::string> names;
  for (const ZipMember& member : members)
    if (member.name.ends_with(".npy")) names.push_back(stem_of(member.name));
  const auto chosen =
      choose_arrays(names, options.path, options.part, options.input, options.label);
  if (!chosen) return nullptr;
  return std::make_unique<ArraySource>(
      "npz", open_chosen_arrays(*chosen, options.path, [&](const std::string& name) {
        return open_member(file, *std::ranges::find(members, name + ".npy", &ZipMember::name));
      }));
}

std::unique_ptr<Source> open_npy_folder(const Storage& storage, const ArraySourceOptions& options) {
  std::vector<std::string> names;
  for (const StorageEntry& entry : storage.list(options.path))
    if (!entry.directory && entry.name.ends_with(".npy")) names.push_back(stem_of(entry.name));
  const auto chosen =
      choose_arrays(names, options.path, options.part, options.input, options.label);
  if (!chosen) return nullptr;
  return std::make_unique<ArraySource>(
      "npy folder", open_chosen_arrays(*chosen, options.path, [&](const std::string& name) {
        return open_array(storage, join_path(options.path, name + ".npy"));
      }));
}

}  // namespace renkei::data
