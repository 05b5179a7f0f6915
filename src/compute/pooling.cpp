#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/pooling.cpp"
#include <hwy/foreach_target.h>
// Highway wants its own headers here.
#include <hwy/highway.h>

#include <algorithm>

#include "compute/pooling.h"
#include "compute/vector-inl.h"

// A plane is the block of channels of one image: height × width vectors.

#ifndef RENKEI_COMPUTE_POOLING_TYPES
#define RENKEI_COMPUTE_POOLING_TYPES
namespace renkei::compute {

// The pixels of the image from `first` to `last` under a window that has `size` with its padding.
struct Window {
  int64_t first, last, size, offset;  // offset: of `first` from where the window begins

  Window(const PoolingShape& s, int64_t pixels, int64_t place) {
    const int64_t begin = place * s.stride - s.padding;
    const int64_t end = std::min(begin + s.kernel, pixels + s.padding);
    first = std::max<int64_t>(begin, 0);
    last = std::min(end, pixels);
    size = end - begin;
    offset = first - begin;
  }
};

inline float share(const PoolingShape& s, const Window& rows, const Window& columns) {
  const int64_t values = s.count_padding
                             ? rows.size * columns.size
                             : (rows.last - rows.first) * (columns.last - columns.first);
  return 1.0f / static_cast<float>(values);
}

// Calls work(rows, columns, index of the output) for all windows of a plane.
template <typename Work>
inline void for_windows(const PoolingShape& s, Work work) {
  const int64_t height = s.out_height(), width = s.out_width();
  for (int64_t y = 0; y < height; ++y) {
    const Window rows(s, s.height, y);
    for (int64_t x = 0; x < width; ++x) work(rows, Window(s, s.width, x), y * width + x);
  }
}

}  // namespace renkei::compute
#endif

HWY_BEFORE_NAMESPACE();
namespace renkei::compute::HWY_NAMESPACE {

template <int kWidth, typename Index>
struct PlacesOf {
  typedef Index Values __attribute__((vector_size(sizeof(Index) * kWidth)));
};

// `places` gets the largest value's place in its window, counted along the rows.
template <int kWidth, typename Index>
void largest(const PoolingShape& s, const float* input, float* output, Index* places) {
  for_windows(s, [&](const Window& rows, const Window& columns, int64_t to) {
    auto best = all<V<kWidth>>(-__builtin_inff());
    M<kWidth> where = M<kWidth>{} + static_cast<int32_t>(rows.offset * s.kernel + columns.offset);
    for (int64_t i = rows.first; i < rows.last; ++i) {
      const float* from = input + (i * s.width + columns.first) * kWidth;
      auto place = static_cast<int32_t>((i - rows.first + rows.offset) * s.kernel + columns.offset);
      for (int64_t j = columns.first; j < columns.last; ++j, from += kWidth, ++place) {
        const auto value = load<V<kWidth>>(from);
        const M<kWidth> better = (value > best) | (value != value);
        best = better ? value : best;
        where = better ? M<kWidth>{} + place : where;
      }
    }
    store(best, output + to * kWidth);
    const auto found = __builtin_convertvector(where, typename PlacesOf<kWidth, Index>::Values);
    std::memcpy(places + to * kWidth, &found, sizeof found);
  });
}

template <int kWidth>
void average(const PoolingShape& s, const float* input, float* output) {
  for_windows(s, [&](const Window& rows, const Window& columns, int64_t to) {
    V<kWidth> sum = {};
    for (int64_t i = rows.first; i < rows.last; ++i)
      for (int64_t j = columns.first; j < columns.last; ++j)
        sum += load<V<kWidth>>(input + (i * s.width + j) * kWidth);
    store(sum * share(s, rows, columns), output + to * kWidth);
  });
}

template <int kWidth>
void average_backward(const PoolingShape& s, const float* output_gradient, float* input_gradient) {
  std::fill_n(input_gradient, s.height * s.width * kWidth, 0.0f);
  for_windows(s, [&](const Window& rows, const Window& columns, int64_t from) {
    const auto part = load<V<kWidth>>(output_gradient + from * kWidth) * share(s, rows, columns);
    for (int64_t i = rows.first; i < rows.last; ++i)
      for (int64_t j = columns.first; j < columns.last; ++j) {
        float* to = input_gradient + (i * s.width + j) * kWidth;
        store(load<V<kWidth>>(to) + part, to);
      }
  });
}

void Largest(const PoolingShape& s, const float* input, float* output, uint8_t* places) {
  with_width(s.block, [&](auto width) { largest<width()>(s, input, output, places); });
}
void LargestOfMany(const PoolingShape& s, const float* input, float* output, int32_t* places) {
  with_width(s.block, [&](auto width) { largest<width()>(s, input, output, places); });
}
void Average(const PoolingShape& s, const float* input, float* output) {
  with_width(s.block, [&](auto width) { average<width()>(s, input, output); });
}
void AverageBackward(const PoolingShape& s, const float* output_gradient, float* input_gradient) {
  with_width(s.block,
             [&](auto width) { average_backward<width()>(s, output_gradient, input_gradient); });
}

}  // namespace renkei::compute::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renkei::compute {

HWY_EXPORT(Largest);
HWY_EXPORT(LargestOfMany);
HWY_EXPORT(Average);
HWY_EXPORT(AverageBackward);

namespace {

// Places in a window are bytes, but for windows of more than 256 values.
bool many(const PoolingShape& s) {
  return s.kernel * s.kernel > 256;
}

template <typename Index>
void largest_backward(const PoolingShape& s, const float* output_gradient, const Index* places,
                      float* input_gradient) {
  std::fill_n(input_gradient, s.height * s.width * s.block, 0.0f);
  const int64_t width = s.out_width(), windows = s.out_height() * width;
  for (int64_t from = 0; from < windows; ++from) {
    const int64_t y = from / width * s.stride - s.padding, x = from % width * s.stride - s.padding;
    for (int64_t c = 0; c < s.block; ++c) {
      const auto place = static_cast<int64_t>(places[from * s.block + c]);
      const int64_t pixel = (y + place / s.kernel) * s.width + x + place % s.kernel;
      input_gradient[pixel * s.block + c] += output_gradient[from * s.block + c];
    }
  }
}

// Calls work(offset in the input, offset in the output) for all planes.
template <typename Work>
void for_planes(const PoolingShape& s, Work work) {
  const int64_t planes = s.batch * s.input().blocks();
  const int64_t in = s.height * s.width * s.block, out = s.output().pixels() * s.block;
#pragma omp parallel for
  for (int64_t plane = 0; plane < planes; ++plane) work(plane * in, plane * out);
}

}  // namespace

size_t pooling_workspace_bytes(const PoolingShape& shape) {
  if (!shape.max) return 0;
  return static_cast<size_t>(shape.output().count()) * (many(shape) ? sizeof(int32_t) : 1);
}

void pooling_forward(const PoolingShape& shape, const float* input, float* output,
                     std::byte* workspace) {
  auto* few = reinterpret_cast<uint8_t*>(workspace);
  auto* more = reinterpret_cast<int32_t*>(workspace);
  for_planes(shape, [&](int64_t in, int64_t out) {
    if (!shape.max)
      HWY_DYNAMIC_DISPATCH(Average)(shape, input + in, output + out);
    else if (many(shape))
      HWY_DYNAMIC_DISPATCH(LargestOfMany)(shape, input + in, output + out, more + out);
    else
      HWY_DYNAMIC_DISPATCH(Largest)(shape, input + in, output + out, few + out);
  });
}

void pooling_backward(const PoolingShape& shape, const float* output_gradient,
                      const std::byte* workspace, float* input_gradient) {
  const auto* few = reinterpret_cast<const uint8_t*>(workspace);
  const auto* more = reinterpret_cast<const int32_t*>(workspace);
  for_planes(shape, [&](int64_t in, int64_t out) {
    if (!shape.max)
      HWY_DYNAMIC_DISPATCH(AverageBackward)(shape, output_gradient + out, input_gradient + in);
    else if (many(shape))
      largest_backward(shape, output_gradient + out, more + out, input_gradient + in);
    else
      largest_backward(shape, output_gradient + out, few + out, input_gradient + in);
  });
}

}  // namespace renkei::compute
#endif
