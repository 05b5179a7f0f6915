// Pictures that a small network can learn in minutes but not at a glance. A shape is defined by a
// test, "is this point inside?", in its own coordinates, where it fits into the unit circle. A
// pixel asks that for a grid of 4 x 4 points, moved, turned and scaled into these coordinates; the
// share of points inside mixes the colours of shape and background. Cost: 16 tests for each pixel.
#include "data/shapes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "base/error.h"
#include "base/philox.h"

namespace renkei::data {
namespace {

struct Point {
  float x, y;
};

using Colour = std::array<float, 3>;  // red, green, blue in [0, 1]

constexpr std::array kArrow{Point{0, 1},         Point{0.8f, 0.1f},    Point{0.28f, 0.1f},
                            Point{0.28f, -0.9f}, Point{-0.28f, -0.9f}, Point{-0.28f, 0.1f},
                            Point{-0.8f, 0.1f}};
constexpr std::array kHourglass{Point{-0.7f, 0.75f}, Point{0.7f, 0.75f},   Point{0.12f, 0},
                                Point{0.7f, -0.75f}, Point{-0.7f, -0.75f}, Point{-0.12f, 0}};
constexpr std::array kStar{Point{0, 1},
                           Point{0.235f, 0.324f},
                           Point{0.951f, 0.309f},
                           Point{0.380f, -0.124f},
                           Point{0.588f, -0.809f},
                           Point{0, -0.4f},
                           Point{-0.588f, -0.809f},
                           Point{-0.380f, -0.124f},
                           Point{-0.951f, 0.309f},
                           Point{-0.235f, 0.324f}};
constexpr std::array kTriangle{Point{0, 1}, Point{0.866f, -0.5f}, Point{-0.866f, -0.5f}};

// Crossing number: a ray from a point inside leaves the outline an odd number of times.
bool in_polygon(std::span<const Point> corners, Point p) {
  bool inside = false;
  Point previous = corners.back();
  for (const Point corner : corners) {
    if ((corner.y > p.y) != (previous.y > p.y) &&
        p.x < corner.x + (previous.x - corner.x) * (p.y - corner.y) / (previous.y - corner.y))
      inside = !inside;
    previous = corner;
  }
  return inside;
}

bool in_disc(Point p, Point centre, float radius) {
  const float x = p.x - centre.x, y = p.y - centre.y;
  return x * x + y * y < radius * radius;
}

bool in_box(Point p, float half_width, float half_height) {
  return std::abs(p.x) < half_width && std::abs(p.y) < half_height;
}

// Two discs above a tip.
bool in_heart(Point p) {
  constexpr std::array kTip{Point{-0.79f, 0.12f}, Point{0, 0.36f}, Point{0.79f, 0.12f},
                            Point{0, -0.9f}};
  return in_disc(p, {-0.42f, 0.36f}, 0.45f) || in_disc(p, {0.42f, 0.36f}, 0.45f) ||
         in_polygon(kTip, p);
}

struct Shape {
  const char* name;
  bool (*contains)(Point);
};

constexpr std::array kShapes{
    Shape{"arrow", [](Point p) { return in_polygon(kArrow, p); }},
    Shape{"circle",
          [](Point p) {
            return in_disc(p, {0, 0}, 0.9f);
          }},
    Shape{"crescent",
          [](Point p) {
            return in_disc(p, {0, 0}, 1) && !in_disc(p, {0.45f, 0}, 0.8f);
          }},
    Shape{"cross", [](Point p) { return in_box(p, 0.28f, 0.95f) || in_box(p, 0.95f, 0.28f); }},
    Shape{"heart", in_heart},
    Shape{"hourglass", [](Point p) { return in_polygon(kHourglass, p); }},
    Shape{"ring",
          [](Point p) {
            return in_disc(p, {0, 0}, 0.95f) && !in_disc(p, {0, 0}, 0.5f);
          }},
    Shape{"square", [](Point p) { return in_box(p, 0.72f, 0.72f); }},
    Shape{"star", [](Point p) { return in_polygon(kStar, p); }},
    Shape{"triangle", [](Point p) { return in_polygon(kTriangle, p); }},
};

Colour random_colour(Random& random) {
  return {random.uniform(), random.uniform(), random.uniform()};
}

// Both colours are random, but a shape that nobody could see would only be a wrong label.
std::array<Colour, 2> contrasting_colours(Random& random) {
  for (;;) {
    const Colour a = random_colour(random), b = random_colour(random);
    float square = 0;
    for (size_t c = 0; c < 3; ++c) square += (a[c] - b[c]) * (a[c] - b[c]);
    if (square > 0.5f * 0.5f) return {a, b};
  }
}

// Where a shape is: maps points of the image, in units of its side, to the shape's coordinates.
class Placement {
 public:
  explicit Placement(Random& random) {
    radius_ = random.uniform(0.3f, 0.46f);
    const float room = 0.5f - radius_;
    centre_ = {0.5f + random.uniform(-room, room), 0.5f + random.uniform(-room, room)};
    const float angle = random.uniform(-0.5f, 0.5f);
    cos_ = std::cos(angle);
    sin_ = std::sin(angle);
  }

  Point to_shape(Point p) const {
    // In an image y points down, in a shape up.
    const float x = (p.x - centre_.x) / radius_, y = (centre_.y - p.y) / radius_;
    return {cos_ * x + sin_ * y, cos_ * y - sin_ * x};
  }

 private:
  float radius_;
  Point centre_;
  float cos_, sin_;
};

// The share of a pixel that the shape covers.
float coverage(const Shape& shape, const Placement& placement, int x, int y, int size) {
  constexpr int kGrid = 4;
  int inside = 0;
  for (int i = 0; i < kGrid * kGrid; ++i) {
    const int column = i % kGrid, row = i / kGrid;
    const float dx = (static_cast<float>(column) + 0.5f) / kGrid;
    const float dy = (static_cast<float>(row) + 0.5f) / kGrid;
    const Point p{(static_cast<float>(x) + dx) / static_cast<float>(size),
                  (static_cast<float>(y) + dy) / static_cast<float>(size)};
    inside += shape.contains(placement.to_shape(p));
  }
  return static_cast<float>(inside) / (kGrid * kGrid);
}

}  // namespace

const std::vector<std::string>& shape_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const Shape& shape : kShapes) result.emplace_back(shape.name);
    return result;
  }();
  return names;
}

LabelledImage draw_shape(uint64_t seed, int64_t index, int size_pixels) {
  if (size_pixels < 8 || size_pixels > 4096)
    throw Error(ErrorCode::usage, fmt::format("shapes cannot be drawn in {} pixels", size_pixels),
                "choose a size from 8 to 4096 pixels");
  const auto label = static_cast<size_t>(index) % kShapes.size();
  Random random(seed, RandomUse::synth_image, 0, static_cast<uint64_t>(index));
  const auto [colour, background] = contrasting_colours(random);
  const Placement placement(random);
  const float noise = random.uniform(0.02f, 0.08f);

  Image image{size_pixels, size_pixels, 3, {}};
  image.pixels.reserve(static_cast<size_t>(size_pixels) * static_cast<size_t>(size_pixels) * 3);
  for (int y = 0; y < size_pixels; ++y)
    for (int x = 0; x < size_pixels; ++x) {
      const float share = coverage(kShapes[label], placement, x, y, size_pixels);
      for (size_t c = 0; c < 3; ++c) {
        const float value = background[c] + share * (colour[c] - background[c]);
        const float noisy = std::clamp(value + noise * random.normal(), 0.0f, 1.0f);
        image.pixels.push_back(static_cast<uint8_t>(std::lround(noisy * 255)));
      }
    }
  return {std::move(image), static_cast<int>(label)};
}

}  // namespace renkei::data
