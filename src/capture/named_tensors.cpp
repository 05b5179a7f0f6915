#include "capture/named_tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

namespace renkei::capture {
namespace {

constexpr size_t kMostDimensions = 64;

// Distances that are read in one go rather than element by element.
constexpr int64_t kSmallRange = 16 << 20;

// Where the last element lies behind the first, or nothing beyond 64 bits.
std::optional<int64_t> furthest(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  int64_t last = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t step = 0;
    if (strides[i] < 0 || __builtin_mul_overflow(sizes[i] - 1, strides[i], &step) ||
        __builtin_add_overflow(last, step, &last))
      return {};
  }
  return last;
}

void check_range(int64_t begin, size_t length, int64_t bytes) {
  if (begin < 0 || begin > bytes || static_cast<int64_t>(length) > bytes - begin)
    throw Error(ErrorCode::bug, fmt::format("bytes {} to {} of a tensor of {} were asked for",
                                            begin, begin + static_cast<int64_t>(length), bytes));
}

// Elements that are not in row-major order: the pieces asked for are gathered one by one, out of
// one read of all that lies between them where that is not much more.
class Gather {
 public:
  Gather(int64_t element, std::vector<int64_t> sizes, StridedBytes where)
      : element_(element), sizes_(std::move(sizes)), where_(std::move(where)) {}

  void read(int64_t begin, std::span<char> into) const {
    if (into.empty()) return;
    const int64_t end = begin + static_cast<int64_t>(into.size());
    const int64_t from = begin / element_, to = (end - 1) / element_ + 1;
    int64_t low = INT64_MAX, high = 0;
    for (int64_t i = from; i < to; ++i) {
      const int64_t at = place_of(i);
      low = std::min(low, at);
      high = std::max(high, at + element_);
    }
    const bool together = high - low <= std::max(kSmallRange, 4 * (end - begin));
    const std::string range =
        together ? where_.file->read(where_.begin + low, high - low) : std::string();
    std::string one(static_cast<size_t>(element_), '\0');
    for (int64_t i = from; i < to; ++i) {
      const int64_t at = place_of(i);
      if (!together) where_.file->read(where_.begin + at, one);
      const char* source = together ? range.data() + (at - low) : one.data();
      const int64_t skip = std::max<int64_t>(begin - i * element_, 0);
      const int64_t length = std::min(element_, end - i * element_) - skip;
      std::memcpy(into.data() + (i * element_ + skip - begin), source + skip,
                  static_cast<size_t>(length));
    }
  }

 private:
  // In bytes from the begin of the storage.
  int64_t place_of(int64_t index) const {
    int64_t at = where_.first;
    for (size_t i = sizes_.size(); i-- > 0;) {
      at += index % sizes_[i] * where_.strides[i];
      index /= sizes_[i];
    }
    return at * element_;
  }

  int64_t element_;
  std::vector<int64_t> sizes_;
  StridedBytes where_;
};

}  // namespace

std::vector<int64_t> row_major_strides(std::span<const int64_t> sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;)
    strides[i - 1] = strides[i] * std::max<int64_t>(sizes[i], 1);
  return strides;
}

bool is_row_major(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  const std::vector<int64_t> expected = row_major_strides(sizes);
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] != 1 && strides[i] != expected[i]) return false;
  return true;
}

void require_values(const std::string& name, const StoredTensor& tensor) {
  if (!tensor.has_values() && tensor.bytes() > 0)
    throw Error(ErrorCode::data, fmt::format("the tensor '{}' has no values", name),
                "give the model values first");
}

int64_t StoredTensor::bytes() const {
  return count_elements(sizes, dtype).value_or(0) * program::bytes_of(dtype);
}

std::string StoredTensor::read_all() const {
  std::string all(static_cast<size_t>(bytes()), '\0');
  read(0, all);
  return all;
}

std::optional<int64_t> count_elements(std::span<const int64_t> sizes, program::DType dtype) {
  int64_t count = 1, bytes = 0;
  for (const int64_t size : sizes) {
    if (size < 0) return {};
    if (__builtin_mul_overflow(count, size, &count)) return {};
  }
  if (__builtin_mul_overflow(count, program::bytes_of(dtype), &bytes)) return {};
  return count;
}

StoredTensor stored_tensor(program::DType dtype, std::vector<int64_t> sizes, StridedBytes where,
                           const std::string& place) {
  const auto refuse = [&](std::string_view what) {
    throw Error(ErrorCode::data, fmt::format("{} {}", place, what),
                "the file is damaged; write it again");
  };
  const std::optional<int64_t> count = count_elements(sizes, dtype);
  if (!count || sizes.size() > kMostDimensions)
    refuse(fmt::format("has the impossible sizes [{}]",
                       fmt::join(std::span(sizes).first(std::min<size_t>(sizes.size(), 8)), ", ")));
  if (where.strides.size() != sizes.size())
    refuse(fmt::format("has {} sizes and {} strides", sizes.size(), where.strides.size()));
  const int64_t element = program::bytes_of(dtype);
  const int64_t held = where.size / element;
  if (*count > 0) {
    const std::optional<int64_t> last = furthest(sizes, where.strides);
    if (!last || where.first < 0 || where.first >= held || *last >= held - where.first)
      refuse(fmt::format("has {} bytes, which do not fit into the {} that are stored for it",
                         *count * element, where.size));
  }
  StoredTensor tensor{.dtype = dtype, .sizes = std::move(sizes)};
  const int64_t bytes = *count * element;
  if (bytes == 0 || is_row_major(tensor.sizes, where.strides)) {
    const int64_t from = where.begin + where.first * element;
    tensor.read = [file = std::move(where.file), from, bytes](int64_t begin, std::span<char> into) {
      check_range(begin, into.size(), bytes);
      if (!into.empty()) file->read(from + begin, into);
    };
  } else {
    tensor.read = [gather = Gather(element, tensor.sizes, std::move(where)), bytes](
                      int64_t begin, std::span<char> into) {
      check_range(begin, into.size(), bytes);
      gather.read(begin, into);
    };
  }
  return tensor;
}

}  // namespace renkei::capture
