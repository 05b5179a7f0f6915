#include "data/source/array_source.h"

#include <algorithm>

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
  ArraySource(std::string_view format, Array input, std::vector<int64_t> labels)
      : format_(format),
        input_(std::move(input)),
        layout_{input_.type, {input_.shape.begin() + 1, input_.shape.end()}},
        labels_(std::move(labels)) {}

  std::string_view format() const override { return format_; }
  int64_t count() const override { return input_.shape[0]; }
  int64_t files() const override { return 1; }
  std::string file_name(int64_t) const override { return input_.file->name(); }
  std::shared_ptr<const ByteFile> file(int64_t) const override { return input_.file; }
  std::optional<ArrayLayout> layout() const override { return layout_; }

  int64_t label(int64_t sample) const override {
    check_sample(sample);
    return labels_.empty() ? kNoLabel : labels_[static_cast<size_t>(sample)];
  }
  Location locate(int64_t sample) const override {
    check_sample(sample);
    return {
        .file = 0, .offset = input_.offset + sample * layout_.bytes(), .length = layout_.bytes()};
  }

 private:
  std::string_view format_;
  Array input_;
  ArrayLayout layout_;
  std::vector<int64_t> labels_;
};

Array open_array(std::shared_ptr<const ByteFile> file, int64_t offset, int64_t length) {
  const NpyHeader header = read_npy_header(*file, offset, length);
  return {std::move(file), offset + header.data_offset, header.type, header.shape};
}

std::unique_ptr<Source> make_source(std::string_view format, Array input,
                                    const std::optional<Array>& label) {
  if (input.shape.empty() || input.shape[0] == 0)
    throw Error(ErrorCode::data, fmt::format("{} has no samples", input.file->name()),
                "the first axis of the array counts the samples");
  std::vector<int64_t> labels;
  if (label) {
    const int64_t bytes = ArrayLayout{label->type, label->shape}.bytes();
    labels = labels_from(label->type, label->shape, label->file->read(label->offset, bytes),
                         input.shape[0], label->file->name());
  }
  return std::make_unique<ArraySource>(format, std::move(input), std::move(labels));
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

}  // namespace

std::vector<int64_t> labels_from(ElementType type, const std::vector<int64_t>& shape,
                                 std::string_view bytes, int64_t count, std::string_view name) {
  const bool one_each = shape.size() == 1 || (shape.size() == 2 && shape[1] == 1);
  if (!one_each || shape[0] != count || type.kind == ElementKind::floating)
    throw Error(
        ErrorCode::data,
        fmt::format("{}: the labels are not one whole number for each of {} samples", name, count),
        "give them as an array of integers, of the length of the inputs");
  std::vector<int64_t> labels(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t label = integer_at(type, bytes, i);
    if (label < 0 || label > INT32_MAX)
      throw Error(ErrorCode::data, fmt::format("{}: the label of sample {} is {}", name, i, label),
                  "number the classes from 0");
    labels[static_cast<size_t>(i)] = label;
  }
  return labels;
}

std::unique_ptr<Source> open_npy_source(const Storage& storage, const ArraySourceOptions& options) {
  if (options.part == Part::held_out) return nullptr;
  auto file = storage.open(options.path);
  const int64_t size = file->size();
  Array input = open_array(std::move(file), 0, size);
  const std::string label_path =
      options.label == "auto" ? label_file_of(storage, options.path) : options.label;
  std::optional<Array> label;
  if (!label_path.empty()) {
    auto label_file = storage.open(label_path);
    const int64_t label_size = label_file->size();
    label = open_array(std::move(label_file), 0, label_size);
  }
  return make_source("npy", std::move(input), label);
}

std::unique_ptr<Source> open_npz_source(const Storage& storage, const ArraySourceOptions& options) {
  const auto file = storage.open(options.path);
  const std::vector<ZipMember> members = read_zip_directory(*file);
  std::vector<std::string> names;
  for (const ZipMember& member : members)
    if (member.name.ends_with(".npy"))
      names.push_back(member.name.substr(0, member.name.size() - 4));
  const ArrayNames chosen =
      choose_arrays(names, options.path, options.part, options.input, options.label);
  if (chosen.input.empty()) return nullptr;
  const auto open = [&](const std::string& name) {
    const auto member = std::ranges::find(members, name + ".npy", &ZipMember::name);
    if (member->deflated) {
      auto unpacked = unpack_zip_member(*file, *member);
      return open_array(std::move(unpacked), 0, member->size);
    }
    return open_array(file, member->offset, member->size);
  };
  std::optional<Array> label;
  if (!chosen.label.empty()) label = open(chosen.label);
  return make_source("npz", open(chosen.input), label);
}

}  // namespace renkei::data
