// Resizing in two passes that share one row: for each row of the output, the rows of the source
// that have a part in it are added up (vertical taps; all columns side by side, in vectors), and
// from that row of floats each output pixel takes its neighbours (horizontal taps; the three
// channels of a pixel side by side, in one vector of four). Four pixels are then transposed into
// three channels, scaled, and stored where they stay.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "data/image/resample.cpp"
#include <hwy/foreach_target.h>
// Must come after foreach_target.h.
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "data/image/resample.h"

#ifndef RENKEI_RESAMPLE_TAPS
#define RENKEI_RESAMPLE_TAPS
namespace renkei::data {

// The filter of one direction: output i is the sum of weights[i × most + k] × source[first[i] + k].
struct Taps {
  int most = 0;  // per output; those with fewer have weights of zero at their end
  const int* first = nullptr;
  const float* weights = nullptr;
};

}  // namespace renkei::data
#endif

HWY_BEFORE_NAMESPACE();
namespace renkei::data {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using U8 = hn::Rebind<uint8_t, F32>;
using I32 = hn::RebindToSigned<F32>;

HWY_INLINE hn::Vec<F32> load_bytes(const uint8_t* from) {
  return hn::ConvertTo(F32(), hn::PromoteTo(I32(), hn::LoadU(U8(), from)));
}

// row[i] = sum over k of weights[k] × source[k × stride + i].
void add_rows(const uint8_t* source, size_t stride, const float* weights, int taps, size_t count,
              float* row) {
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  const auto add_vector = [&](size_t i) HWY_ATTR {
    auto sum = hn::Mul(load_bytes(source + i), hn::Set(d, weights[0]));
    for (int k = 1; k < taps; ++k)
      sum = hn::MulAdd(load_bytes(source + static_cast<size_t>(k) * stride + i),
                       hn::Set(d, weights[k]), sum);
    hn::StoreU(sum, d, row + i);
  };
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) add_vector(i);
  if (i == count) return;
  // The last vector overlaps the one before, so that nothing beyond the row is read.
  if (count >= lanes) return add_vector(count - lanes);
  for (; i < count; ++i) {
    row[i] = 0;
    for (int k = 0; k < taps; ++k)
      row[i] += weights[k] * source[static_cast<size_t>(k) * stride + i];
  }
}

#if HWY_TARGET == HWY_SCALAR

// Processors without vectors of four.
void narrow_row(const float* row, const Taps& taps, const ResampleTask& task, float* output,
                size_t area) {
  const auto most = static_cast<size_t>(taps.most);
  for (size_t x = 0; x < static_cast<size_t>(task.width); ++x)
    for (size_t c = 0; c < 3; ++c) {
      const float* from = row + static_cast<size_t>(taps.first[x]) * 3 + c;
      float sum = 0;
      for (size_t k = 0; k < most; ++k) sum += taps.weights[x * most + k] * from[3 * k];
      output[c * area + x] = sum * task.scale[c] + task.bias[c];
    }
}

#else

using F4 = hn::FixedTag<float, 4>;

HWY_INLINE hn::Vec<F4> gather_pixel(const float* row, const Taps& taps, int x) {
  const F4 d;
  const float* weights = taps.weights + static_cast<size_t>(x) * static_cast<size_t>(taps.most);
  const float* pixel = row + static_cast<size_t>(taps.first[x]) * 3;
  auto sum = hn::Mul(hn::LoadU(d, pixel), hn::Set(d, weights[0]));
  for (int k = 1; k < taps.most; ++k)
    sum = hn::MulAdd(hn::LoadU(d, pixel + 3 * k), hn::Set(d, weights[k]), sum);
  return sum;
}

void narrow_row(const float* row, const Taps& taps, const ResampleTask& task, float* output,
                size_t area) {
  const F4 d;
  HWY_ALIGN float pixels[16];
  for (int x = 0; x < task.width; x += 4) {
    const int count = std::min(4, task.width - x);
    for (int i = 0; i < count; ++i) hn::Store(gather_pixel(row, taps, x + i), d, pixels + 4 * i);
    hn::Vec<F4> channels[3], unused;
    hn::LoadInterleaved4(d, pixels, channels[0], channels[1], channels[2], unused);
    for (size_t c = 0; c < 3; ++c) {
      const auto value =
          hn::MulAdd(channels[c], hn::Set(d, task.scale[c]), hn::Set(d, task.bias[c]));
      float* into = output + c * area + x;
      if (count == 4) {
        hn::StoreU(value, d, into);
      } else {
        HWY_ALIGN float rest[4];
        hn::Store(value, d, rest);
        std::copy(rest, rest + count, into);
      }
    }
  }
}

#endif

void resample_kernel(const ResampleTask& task, const Taps& columns, const Taps& rows, int left,
                     int right, float* row, float* output) {
  const size_t stride = static_cast<size_t>(task.image.width) * 3;
  const size_t area = static_cast<size_t>(task.width) * static_cast<size_t>(task.height);
  const auto count = static_cast<size_t>(right - left) * 3;
  for (int y = 0; y < task.height; ++y) {
    const uint8_t* source =
        task.image.pixels.data() + static_cast<size_t>(rows.first[y]) * stride + left * 3;
    add_rows(source, stride, rows.weights + static_cast<size_t>(y) * static_cast<size_t>(rows.most),
             rows.most, count, row);
    narrow_row(row, columns, task,
               output + static_cast<size_t>(y) * static_cast<size_t>(task.width), area);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace renkei::data
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include "base/error.h"

namespace renkei::data {
namespace {

HWY_EXPORT(resample_kernel);

struct Direction {
  float begin;   // of the window
  float length;  // of the window
  int limit;     // pixels that there are
  int output;
  bool mirrored;
};

int most_taps(const Direction& to) {
  const float scale = to.length / static_cast<float>(to.output);
  return static_cast<int>(std::ceil(2 * std::max(1.0f, scale)));
}

// Output x sits at centre c = begin + (x + 1/2) s - 1/2 and takes pixels within max(1, s) of it.
// Counted from the first pixel of the window, so that its place in what was decoded changes no bit.
void fill_taps(const Direction& to, int most, int* first, float* weights) {
  const float scale = to.length / static_cast<float>(to.output);
  const float half_width = std::max(1.0f, scale);
  const int low = std::max(0, static_cast<int>(std::floor(to.begin)));
  const int high = std::min(to.limit, static_cast<int>(std::ceil(to.begin + to.length))) - 1;
  const float origin = to.begin - static_cast<float>(low);
  for (int i = 0; i < to.output; ++i) {
    const int x = to.mirrored ? to.output - 1 - i : i;
    const float centre = origin + (static_cast<float>(x) + 0.5f) * scale - 0.5f;
    int begin = std::clamp(static_cast<int>(std::floor(centre - half_width)) + 1, 0, high - low);
    // All taps of all outputs are inside, so that the loops need no end of their own.
    begin = std::max(0, std::min(begin, high - low + 1 - most));
    float sum = 0;
    float* row = weights + static_cast<size_t>(i) * static_cast<size_t>(most);
    for (int k = 0; k < most; ++k) {
      const float distance = std::abs(static_cast<float>(begin + k) - centre);
      row[k] = begin + k > high - low ? 0 : std::max(0.0f, 1.0f - distance / half_width);
      sum += row[k];
    }
    for (int k = 0; k < most; ++k) row[k] /= sum;
    first[i] = low + begin;
  }
}

struct Plan {
  Direction columns, rows;
  int column_taps, row_taps;
};

Plan plan_of(const ResampleTask& task) {
  const Window& window = task.window;
  const Direction columns{window.x, window.width, task.image.width, task.width, task.flip};
  const Direction rows{window.y, window.height, task.image.height, task.height, false};
  const auto inside = [](const Direction& to) {
    return to.begin >= 0 && to.length > 0 && to.output > 0 &&
           to.begin + to.length <= static_cast<float>(to.limit) + 1e-2f;
  };
  if (!inside(columns) || !inside(rows) || task.image.channels != 3)
    throw Error(ErrorCode::bug, fmt::format("a window of {} x {} at ({}, {}) in {} x {} pixels",
                                            window.width, window.height, window.x, window.y,
                                            task.image.width, task.image.height));
  // A window of fewer pixels than a filter has taps.
  const auto fit = [](const Direction& to) {
    const int low = std::max(0, static_cast<int>(std::floor(to.begin)));
    const int high = std::min(to.limit, static_cast<int>(std::ceil(to.begin + to.length)));
    return std::min(most_taps(to), high - low);
  };
  return {columns, rows, fit(columns), fit(rows)};
}

}  // namespace

void resample(const ResampleTask& task, ResampleScratch& scratch, std::span<float> output) {
  const Plan plan = plan_of(task);
  if (output.size() != 3 * static_cast<size_t>(task.width) * static_cast<size_t>(task.height))
    throw Error(ErrorCode::bug, "the output of resample has another size");
  const auto width = static_cast<size_t>(task.width), height = static_cast<size_t>(task.height);
  scratch.places.resize(width + height);
  const size_t column_weights = width * static_cast<size_t>(plan.column_taps);
  scratch.weights.resize(column_weights + height * static_cast<size_t>(plan.row_taps));
  fill_taps(plan.columns, plan.column_taps, scratch.places.data(), scratch.weights.data());
  fill_taps(plan.rows, plan.row_taps, scratch.places.data() + width,
            scratch.weights.data() + column_weights);

  // Only the columns of the window; the taps count from its left.
  const int left = std::max(0, static_cast<int>(std::floor(task.window.x)));
  const int right =
      std::min(task.image.width, static_cast<int>(std::ceil(task.window.x + task.window.width)));
  for (size_t x = 0; x < width; ++x) scratch.places[x] -= left;
  // One float more, as a pixel is read as a vector of four.
  scratch.row.resize(static_cast<size_t>(right - left) * 3 + 1);

  HWY_DYNAMIC_DISPATCH(resample_kernel)
  (task, {plan.column_taps, scratch.places.data(), scratch.weights.data()},
   {plan.row_taps, scratch.places.data() + width, scratch.weights.data() + column_weights}, left,
   right, scratch.row.data(), output.data());
}

void resample_plainly(const ResampleTask& task, std::span<float> output) {
  const Plan plan = plan_of(task);
  std::vector<int> x_first(static_cast<size_t>(task.width)),
      y_first(static_cast<size_t>(task.height));
  std::vector<float> x_weights(x_first.size() * static_cast<size_t>(plan.column_taps));
  std::vector<float> y_weights(y_first.size() * static_cast<size_t>(plan.row_taps));
  fill_taps(plan.columns, plan.column_taps, x_first.data(), x_weights.data());
  fill_taps(plan.rows, plan.row_taps, y_first.data(), y_weights.data());
  const size_t area = x_first.size() * y_first.size();
  for (size_t y = 0; y < y_first.size(); ++y)
    for (size_t x = 0; x < x_first.size(); ++x)
      for (size_t c = 0; c < 3; ++c) {
        double sum = 0;
        for (int i = 0; i < plan.row_taps; ++i)
          for (int k = 0; k < plan.column_taps; ++k) {
            const int row = y_first[y] + i, column = x_first[x] + k;
            sum +=
                double{y_weights[y * static_cast<size_t>(plan.row_taps) + static_cast<size_t>(i)]} *
                x_weights[x * static_cast<size_t>(plan.column_taps) + static_cast<size_t>(k)] *
                task.image
                    .pixels[(static_cast<size_t>(row) * static_cast<size_t>(task.image.width) +
                             static_cast<size_t>(column)) *
                                3 +
                            c];
          }
        output[c * area + y * x_first.size() + x] =
            static_cast<float>(sum * task.scale[c] + task.bias[c]);
      }
}

}  // namespace renkei::data

#endif  // HWY_ONCE
