#include "data/source/hdf5_source.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "data/source/array_choice.h"
#include "data/source/hdf5_driver.h"

namespace renkei::data {
namespace {

// The library locks itself where it was built thread safe, and must not be called from two threads
// where it was not.
std::mutex& library_mutex() {
  static std::mutex mutex;
  return mutex;
}

// A handle of the library that closes itself.
template <herr_t (*Close)(hid_t)>
class Handle {
 public:
  Handle() = default;
  explicit Handle(hid_t id) : id_(id) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~Handle() {
    if (id_ >= 0) Close(id_);
  }
  hid_t id() const { return id_; }
  explicit operator bool() const { return id_ >= 0; }

 private:
  hid_t id_ = -1;
};
using FileHandle = Handle<H5Fclose>;
using DatasetHandle = Handle<H5Dclose>;
using SpaceHandle = Handle<H5Sclose>;
using TypeHandle = Handle<H5Tclose>;
using PropertyHandle = Handle<H5Pclose>;

struct Hdf5Array {
  DatasetHandle dataset;
  ElementType type;
  std::vector<int64_t> shape;
  // Where samples stand: all from here, or whole ones in plain chunks, or only the library knows.
  int64_t begin = -1;
  int64_t chunk_samples = 0;

  ArrayLayout layout() const { return {type, {shape.begin() + 1, shape.end()}}; }
};

Error wrong(const std::string& path, std::string_view what) {
  return Error(ErrorCode::data, fmt::format("{}: {}", path, what),
               "check the file with h5dump -H; copy it again if it is damaged");
}

// The reason below the library, where there is one.
[[noreturn]] void fail(Hdf5Bytes& bytes, const Error& otherwise) {
  if (bytes.failure) std::rethrow_exception(std::exchange(bytes.failure, nullptr));
  throw otherwise;
}

ElementType element_type(hid_t type, const std::string& path, const std::string& name) {
  ElementType element{.bytes = static_cast<int>(H5Tget_size(type)),
                      .big_endian = H5Tget_order(type) == H5T_ORDER_BE};
  const H5T_class_t kind = H5Tget_class(type);
  if (kind == H5T_FLOAT)
    element.kind = ElementKind::floating;
  else if (kind == H5T_INTEGER && H5Tget_sign(type) == H5T_SGN_2)
    element.kind = ElementKind::signed_integer;
  const bool size_is_right =
      element.bytes == 1 || element.bytes == 2 || element.bytes == 4 || element.bytes == 8;
  if ((kind != H5T_FLOAT && kind != H5T_INTEGER) || !size_is_right ||
      (kind == H5T_FLOAT && element.bytes == 1))
    throw wrong(path, fmt::format("the dataset '{}' does not hold plain numbers", name));
  return element;
}

Hdf5Array open_array(hid_t file, const std::string& path, const std::string& name) {
  Hdf5Array array{.dataset = DatasetHandle(H5Dopen2(file, name.c_str(), H5P_DEFAULT))};
  if (!array.dataset) throw wrong(path, fmt::format("could not open the dataset '{}'", name));
  // What can't be found elsewhere, the library replaces by zeros.
  const PropertyHandle created(H5Dget_create_plist(array.dataset.id()));
  if (!created || H5Pget_layout(created.id()) == H5D_VIRTUAL ||
      H5Pget_external_count(created.id()) > 0)
    throw Error(ErrorCode::data,
                fmt::format("{}: the numbers of the dataset '{}' are in other files", path, name),
                "store them in this one: h5repack does it");
  const TypeHandle type(H5Dget_type(array.dataset.id()));
  const SpaceHandle space(H5Dget_space(array.dataset.id()));
  const int axes = H5Sget_simple_extent_ndims(space.id());
  if (!type || !space || axes < 1 || axes > H5S_MAX_RANK)
    throw wrong(path, fmt::format("the dataset '{}' has no axis of samples", name));
  array.type = element_type(type.id(), path, name);
  std::vector<hsize_t> sides(static_cast<size_t>(axes));
  H5Sget_simple_extent_dims(space.id(), sides.data(), nullptr);
  for (const hsize_t side : sides)
    array.shape.push_back(static_cast<int64_t>(std::min<hsize_t>(side, INT64_MAX)));
  if (!fits_in_memory_range(array.shape, array.type.bytes))
    throw wrong(path, fmt::format("the dataset '{}' has no shape that makes sense", name));
  return array;
}

std::string read_all(const Hdf5Array& array, const std::string& path) {
  const int64_t bytes = ArrayLayout{array.type, array.shape}.bytes();
  // Deflate packs at most 1032 to 1, and what was never written takes no space: a few numbers more
  // than that are in order, memory for 2^60 of them is not.
  const auto stored = static_cast<int64_t>(
      std::min<hsize_t>(H5Dget_storage_size(array.dataset.id()), INT64_MAX / 2));
  if (bytes / 1032 > stored + (64 << 10))
    throw wrong(path, fmt::format("the labels claim to have {} bytes, in {}", bytes, stored));
  // The file's own type, so that the bytes come as they are.
  const TypeHandle type(H5Dget_type(array.dataset.id()));
  std::string content(static_cast<size_t>(bytes), '\0');
  if (H5Dread(array.dataset.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, content.data()) < 0)
    throw wrong(path, "the labels can't be read");
  return content;
}

herr_t collect_name(hid_t, const char* name, const H5O_info_t* info, void* names) {
  if (info->type == H5O_TYPE_DATASET)
    static_cast<std::vector<std::string>*>(names)->emplace_back(name);
  return 0;
}

// Sets `begin` (contiguous) or `chunk_samples` (whole samples in plain chunks), or neither.
void find_storage(hid_t file, int64_t file_bytes, Hdf5Array& array) {
  const PropertyHandle created(H5Dget_create_plist(array.dataset.id()));
  const PropertyHandle of_file(H5Fget_create_plist(file));
  hsize_t user_block = 0;
  if (!created || !of_file || H5Pget_userblock(of_file.id(), &user_block) < 0 || user_block != 0)
    return;
  if (H5Pget_nfilters(created.id()) != 0) return;
  const H5D_layout_t layout = H5Pget_layout(created.id());
  if (layout == H5D_CONTIGUOUS) {
    const haddr_t address = H5Dget_offset(array.dataset.id());
    if (address != HADDR_UNDEF && address <= static_cast<haddr_t>(file_bytes))
      array.begin = static_cast<int64_t>(address);
  } else if (layout == H5D_CHUNKED) {
    std::vector<hsize_t> chunk(array.shape.size());
    if (H5Pget_chunk(created.id(), static_cast<int>(chunk.size()), chunk.data()) !=
        static_cast<int>(chunk.size()))
      return;
    const bool whole =
        std::equal(chunk.begin() + 1, chunk.end(), array.shape.begin() + 1,
                   [](hsize_t a, int64_t b) { return static_cast<int64_t>(a) == b; });
    if (whole) array.chunk_samples = static_cast<int64_t>(chunk[0]);
  }
}

class Hdf5Source : public Source {
 public:
  Hdf5Source(std::string path, std::unique_ptr<Hdf5Bytes> bytes, FileHandle file,
             ChosenArrays<Hdf5Array> chosen, std::vector<int64_t> labels)
      : path_(std::move(path)),
        bytes_(std::move(bytes)),
        file_(std::move(file)),
        count_(chosen.count),
        fields_(std::move(chosen.fields)),
        arrays_(std::move(chosen.arrays)),
        labels_(std::move(labels)) {
    for (Hdf5Array& array : arrays_) {
      find_storage(file_.id(), bytes_->file->size(), array);
      lengths_.push_back(array.layout().bytes());
    }
  }
  ~Hdf5Source() override {
    const std::lock_guard lock(library_mutex());
    arrays_.clear();
    file_ = FileHandle();
  }

  std::string_view format() const override { return "HDF5"; }
  int64_t count() const override { return count_; }
  const std::vector<StoredField>& fields() const override { return fields_; }
  int64_t records() const override { return static_cast<int64_t>(arrays_.size()); }
  int64_t files() const override { return 1; }
  std::string file_name(int64_t) const override { return path_; }
  std::shared_ptr<const ByteFile> file(int64_t) const override { return bytes_->file; }
  int64_t label(int64_t sample) const override {
    check_sample(sample);
    return labels_.empty() ? kNoLabel : labels_[static_cast<size_t>(sample)];
  }
  std::string describe(int64_t sample) const override {
    return fmt::format("sample {} ({})", sample, path_);
  }

  Location locate(int64_t sample, int64_t record) const override {
    check_sample(sample);
    const Hdf5Array& array = arrays_[static_cast<size_t>(record)];
    const int64_t length = lengths_[static_cast<size_t>(record)];
    if (array.begin >= 0)
      return {.file = 0, .offset = array.begin + sample * length, .length = length};
    if (array.chunk_samples == 0) return {.length = length};
    std::vector<hsize_t> corner(array.shape.size(), 0);
    corner[0] = static_cast<hsize_t>(sample - sample % array.chunk_samples);
    unsigned filters = 0;
    haddr_t address = HADDR_UNDEF;
    hsize_t size = 0;
    {
      const std::lock_guard lock(library_mutex());
      if (H5Dget_chunk_info_by_coord(array.dataset.id(), corner.data(), &filters, &address, &size) <
          0)
        fail(*bytes_, wrong(path_, fmt::format("sample {} has no place in it", sample)));
    }
    if (address == HADDR_UNDEF) return {.length = length};  // never written: the fill value
    return {.file = 0,
            .offset = static_cast<int64_t>(address) + sample % array.chunk_samples * length,
            .length = length};
  }

  std::string read(int64_t sample, int64_t record) const override {
    if (locate(sample, record).file >= 0) return Source::read(sample, record);
    const Hdf5Array& array = arrays_[static_cast<size_t>(record)];
    std::vector<hsize_t> begin(array.shape.size(), 0), sides(array.shape.size());
    std::ranges::copy(array.shape, sides.begin());
    begin[0] = static_cast<hsize_t>(sample);
    sides[0] = 1;
    std::string bytes(static_cast<size_t>(lengths_[static_cast<size_t>(record)]), '\0');
    const std::lock_guard lock(library_mutex());
    const SpaceHandle from(H5Dget_space(array.dataset.id()));
    const SpaceHandle into(H5Screate_simple(static_cast<int>(sides.size()), sides.data(), nullptr));
    const TypeHandle type(H5Dget_type(array.dataset.id()));
    if (H5Sselect_hyperslab(from.id(), H5S_SELECT_SET, begin.data(), nullptr, sides.data(),
                            nullptr) < 0 ||
        H5Dread(array.dataset.id(), type.id(), into.id(), from.id(), H5P_DEFAULT, bytes.data()) < 0)
      fail(*bytes_, wrong(path_, fmt::format("sample {} can't be read", sample)));
    return bytes;
  }

 private:
  std::string path_;
  std::unique_ptr<Hdf5Bytes> bytes_;
  FileHandle file_;
  int64_t count_;
  std::vector<StoredField> fields_;
  std::vector<Hdf5Array> arrays_;
  std::vector<int64_t> lengths_;  // of a sample in each
  std::vector<int64_t> labels_;
};

}  // namespace

std::unique_ptr<Source> open_hdf5_source(const Storage& storage,
                                         const ArraySourceOptions& options) {
  const std::string& path = options.path;
  auto bytes = std::make_unique<Hdf5Bytes>(Hdf5Bytes{.file = storage.open(path)});
  const std::lock_guard lock(library_mutex());
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // our errors name the file, its stack does not
  try {
    FileHandle file(open_hdf5_file(*bytes));
    if (!file) throw wrong(path, "this is not a readable HDF5 file");
    std::vector<std::string> names;
    if (H5Ovisit2(file.id(), H5_INDEX_NAME, H5_ITER_INC, collect_name, &names, H5O_INFO_BASIC) < 0)
      throw wrong(path, "the names in it can't be listed");
    const auto chosen = choose_arrays(names, path, options.part, options.input, options.label);
    if (!chosen) return nullptr;
    auto arrays = open_chosen_arrays(*chosen, path, [&](const std::string& name) {
      try {
        return open_array(file.id(), path, name);
      } catch (const Error& error) {
        fail(*bytes, error);
      }
    });
    std::vector<int64_t> labels;
    if (arrays.label) labels = labels_from(arrays.label->type, read_all(*arrays.label, path), path);
    return std::make_unique<Hdf5Source>(path, std::move(bytes), std::move(file), std::move(arrays),
                                        std::move(labels));
  } catch (const Error& error) {
    if (!bytes) throw;
    fail(*bytes, error);
  }
}

}  // namespace renkei::data
