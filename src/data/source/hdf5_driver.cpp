// A driver of HDF5's virtual file layer, for reading only: the library calls these functions with
// addresses, and they read a ByteFile.
#include "data/source/hdf5_driver.h"

#include <algorithm>
#include <cstring>
#include <functional>

namespace renkei::data {
namespace {

constexpr int64_t kBlockBytes = 64 << 10;
constexpr haddr_t kMostAddress = (haddr_t{1} << 62) - 1;

struct OpenFile {
  H5FD_t common;  // must be the first
  Hdf5Bytes* bytes;
  haddr_t end_of_allocated;
};

Hdf5Bytes& bytes_of(const H5FD_t* file) {
  return *reinterpret_cast<const OpenFile*>(file)->bytes;
}

void read_through_block(Hdf5Bytes& bytes, int64_t offset, std::span<char> into) {
  const auto length = static_cast<int64_t>(into.size());
  const auto is_in_block = [&] {
    return offset >= bytes.block_begin &&
           offset + length <= bytes.block_begin + static_cast<int64_t>(bytes.block.size());
  };
  if (length > kBlockBytes) {
    bytes.file->read(offset, into);
    return;
  }
  if (!is_in_block()) {
    bytes.block = bytes.file->read(offset, std::min(kBlockBytes, bytes.file->size() - offset));
    bytes.block_begin = offset;
  }
  std::memcpy(into.data(), bytes.block.data() + (offset - bytes.block_begin), into.size());
}

H5FD_t* open(const char*, unsigned flags, hid_t properties, haddr_t) {
  const void* info = H5Pget_driver_info(properties);
  if (!info || flags != H5F_ACC_RDONLY) return nullptr;
  auto* file = new OpenFile{};
  std::memcpy(&file->bytes, info, sizeof(file->bytes));
  return &file->common;
}

herr_t close(H5FD_t* file) {
  delete reinterpret_cast<OpenFile*>(file);
  return 0;
}

// Two that are open at the same time are two, also of the same file.
int compare(const H5FD_t* a, const H5FD_t* b) {
  return std::less<>()(a, b) ? -1 : a != b;
}

herr_t query(const H5FD_t*, unsigned long* flags) {
  *flags = H5FD_FEAT_ACCUMULATE_METADATA_READ | H5FD_FEAT_DATA_SIEVE;
  return 0;
}

haddr_t get_end_of_allocated(const H5FD_t* file, H5FD_mem_t) {
  return reinterpret_cast<const OpenFile*>(file)->end_of_allocated;
}

herr_t set_end_of_allocated(H5FD_t* file, H5FD_mem_t, haddr_t address) {
  reinterpret_cast<OpenFile*>(file)->end_of_allocated = address;
  return 0;
}

haddr_t get_end_of_file(const H5FD_t* file, H5FD_mem_t) {
  return static_cast<haddr_t>(bytes_of(file).file->size());
}

// As the library's own drivers: what is beyond the end is zero.
herr_t read(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, size_t size, void* buffer) {
  Hdf5Bytes& bytes = bytes_of(file);
  auto* into = static_cast<char*>(buffer);
  if (address > kMostAddress) return -1;
  const auto offset = static_cast<int64_t>(address);
  const int64_t available = std::max<int64_t>(0, bytes.file->size() - offset);
  const size_t inside = std::min(size, static_cast<size_t>(available));
  try {
    if (inside > 0) read_through_block(bytes, offset, {into, inside});
  } catch (...) {  // no exception may pass through the library, which is written in C
    bytes.failure = std::current_exception();
    return -1;
  }
  std::memset(into + inside, 0, size - inside);
  return 0;
}

herr_t write(H5FD_t*, H5FD_mem_t, hid_t, haddr_t, size_t, const void*) {
  return -1;
}

hid_t register_driver() {
  static H5FD_class_t driver{};
  driver.name = "renkei";
  driver.maxaddr = kMostAddress;
  driver.fc_degree = H5F_CLOSE_WEAK;
  driver.fapl_size = sizeof(Hdf5Bytes*);
  driver.open = open;
  driver.close = close;
  driver.cmp = compare;
  driver.query = query;
  driver.get_eoa = get_end_of_allocated;
  driver.set_eoa = set_end_of_allocated;
  driver.get_eof = get_end_of_file;
  driver.read = read;
  driver.write = write;
  for (H5FD_mem_t& kind : driver.fl_map) kind = H5FD_MEM_SUPER;
  return H5FDregister(&driver);
}

}  // namespace

hid_t open_hdf5_file(Hdf5Bytes& bytes) {
  static const hid_t driver = register_driver();
  const hid_t properties = H5Pcreate(H5P_FILE_ACCESS);
  Hdf5Bytes* const info = &bytes;
  hid_t file = -1;
  if (H5Pset_driver(properties, driver, static_cast<const void*>(&info)) >= 0)
    file = H5Fopen(bytes.file->name().c_str(), H5F_ACC_RDONLY, properties);
  H5Pclose(properties);
  return file;
}

}  // namespace renkei::data
