#include <fmt/format.h>

#include <algorithm>

#include "graph/builder.h"
#include "graph/synthetic.h"

namespace renkei::graph {
namespace {

// The second convolution halves the image, as in torchvision's networks.
ValueIndex bottleneck(Builder& builder, const std::string& name, ValueIndex x, int64_t in,
                      int64_t width, int64_t in_pixels, int64_t pixels) {
  const int64_t out = 4 * width, elements = out * pixels * pixels;
  ValueIndex y = builder.conv(x, {name + ".conv1", in, width, 1, in_pixels});
  y = builder.conv(y, {name + ".conv2", width, width, 9, pixels});
  y = builder.conv(y, {.name = name + ".conv3",
                       .in = width,
                       .out = out,
                       .taps = 1,
                       .pixels = pixels,
                       .relu = false});
  if (in != out)
    x = builder.conv(x, {.name = name + ".downsample",
                         .in = in,
                         .out = out,
                         .taps = 1,
                         .pixels = pixels,
                         .relu = false});
  y = builder.pointwise(name + ".add", "add", {x, y}, elements, false);
  return builder.pointwise(name + ".relu", "relu", {y}, elements, true);
}

// Branches of one input, joined by their channels.
class Inception {
 public:
  Inception(Builder& builder, ValueIndex from, int64_t channels, int64_t pixels)
      : builder_(builder), x_(from), channels_(channels), pixels_(pixels) {}

  struct Layer {
    int64_t channels, taps;
    bool halves = false;
  };

  // A branch of convolutions; the last has an equal twin where `twin` has taps.
  void branch(const std::vector<Layer>& layers, int64_t twin_taps = 0) {
    ValueIndex y = x_;
    int64_t in = channels_, pixels = pixels_;
    for (size_t i = 0; i < layers.size(); ++i) {
      if (layers[i].halves) pixels = (pixels - 1) / 2;
      const bool last = i + 1 == layers.size();
      if (last && twin_taps > 0) add(conv(y, in, layers[i].channels, twin_taps, pixels), layers[i]);
      y = conv(y, in, layers[i].channels, layers[i].taps, pixels);
      in = layers[i].channels;
    }
    add(y, layers.back());
    out_pixels_ = pixels;
  }
  // A pooled branch, with a convolution behind it where `channels` says so.
  void pooled(int64_t channels, bool halves) {
    const int64_t pixels = halves ? (pixels_ - 1) / 2 : pixels_;
    ValueIndex y = builder_.pool(next_name("pool"), x_, channels_ * pixels * pixels, 9);
    if (channels > 0) y = conv(y, channels_, channels, 1, pixels);
    add(y, {channels > 0 ? channels : channels_, 1});
    out_pixels_ = pixels;
  }
  void join(const std::string& name) {
    x_ =
        builder_.pointwise(name, "concat", ends_, out_channels_ * out_pixels_ * out_pixels_, false);
    channels_ = out_channels_;
    pixels_ = out_pixels_;
    ends_.clear();
    out_channels_ = 0;
  }
  // In a row, without branches.
  void append(const Layer& layer, int64_t pixels) {
    x_ = conv(x_, channels_, layer.channels, layer.taps, pixels);
    channels_ = layer.channels;
    pixels_ = pixels;
  }
  void append_pool(int64_t pixels) {
    x_ = builder_.pool(next_name("pool"), x_, channels_ * pixels * pixels, 9);
    pixels_ = pixels;
  }
  ValueIndex end() const { return x_; }

 private:
  std::string next_name(const char* kind) { return fmt::format("{}{}", kind, count_++); }
  ValueIndex conv(ValueIndex from, int64_t in, int64_t out, int64_t taps, int64_t pixels) {
    return builder_.conv(from, {next_name("conv"), in, out, taps, pixels});
  }
  void add(ValueIndex end, const Layer& layer) {
    ends_.push_back(end);
    out_channels_ += layer.channels;
  }

  Builder& builder_;
  ValueIndex x_;
  int64_t channels_, pixels_, out_channels_ = 0, out_pixels_ = 0;
  std::vector<ValueIndex> ends_;
  int count_ = 0;
};

}  // namespace

Graph resnet(const ResnetOptions& o) {
  int depth = 2;
  for (const int blocks : o.blocks) depth += 3 * blocks;
  Builder builder(fmt::format("resnet{}", depth), o.batch);
  const ValueIndex image = builder.input("image", 3 * o.image_pixels * o.image_pixels);
  const ValueIndex target = builder.input("target", 1);
  int64_t channels = 64 * o.widen, width = channels;
  int64_t pixels = std::max<int64_t>(1, o.image_pixels / 2);
  ValueIndex x = builder.conv(image, {"stem", 3, channels, 49, pixels});
  pixels = std::max<int64_t>(1, pixels / 2);
  x = builder.pool("stem.pool", x, channels * pixels * pixels, 9);
  for (size_t group = 0; group < o.blocks.size(); ++group) {
    int64_t in_pixels = pixels;
    if (group > 0) pixels = std::max<int64_t>(1, pixels / 2);
    for (int block = 0; block < o.blocks[group]; ++block) {
      const std::string name = fmt::format("layer{}.{}", group + 1, block);
      x = bottleneck(builder, name, x, channels, width, in_pixels, pixels);
      channels = 4 * width;
      in_pixels = pixels;
    }
    width *= 2;
  }
  x = builder.pool("average", x, channels, pixels * pixels);
  x = builder.linear("classifier", x, 1, channels, o.classes);
  return builder.finish(builder.cross_entropy(x, target, o.classes));
}

namespace {

// The dense layers that AlexNet and VGG end with, and the loss.
Graph with_classifier(Builder& builder, ValueIndex x, int64_t in, ValueIndex target) {
  for (const int64_t out : {4096, 4096, 1000}) {
    x = builder.linear(fmt::format("classifier{}", in), x, 1, in, out);
    if (out != 1000) x = builder.pointwise("classifier.relu", "relu", {x}, out, true);
    in = out;
  }
  return builder.finish(builder.cross_entropy(x, target, 1000));
}

}  // namespace

Graph alexnet(int64_t batch) {
  Builder builder("alexnet", batch);
  ValueIndex x = builder.input("image", 3 * 224 * 224);
  const ValueIndex target = builder.input("target", 1);
  struct Layer {
    int64_t channels, taps, pixels, pooled;
  };
  int64_t in = 3, number = 1;
  for (const Layer& layer : {Layer{64, 121, 55, 27}, Layer{192, 25, 27, 13}, Layer{384, 9, 13, 0},
                             Layer{256, 9, 13, 0}, Layer{256, 9, 13, 6}}) {
    x = builder.conv(x, {.name = fmt::format("conv{}", number),
                         .in = in,
                         .out = layer.channels,
                         .taps = layer.taps,
                         .pixels = layer.pixels,
                         .norm = false});
    in = layer.channels;
    if (layer.pooled > 0)
      x = builder.pool(fmt::format("pool{}", number), x, in * layer.pooled * layer.pooled, 9);
    ++number;
  }
  return with_classifier(builder, x, in * 6 * 6, target);
}

Graph vgg16(int64_t batch) {
  Builder builder("vgg16", batch);
  ValueIndex x = builder.input("image", 3 * 224 * 224);
  const ValueIndex target = builder.input("target", 1);
  int64_t channels = 3, pixels = 224;
  constexpr int kConvolutions[] = {2, 2, 3, 3, 3};
  constexpr int64_t kWidths[] = {64, 128, 256, 512, 512};
  for (int group = 0; group < 5; ++group) {
    for (int i = 0; i < kConvolutions[group]; ++i) {
      x = builder.conv(x, {.name = fmt::format("conv{}_{}", group + 1, i + 1),
                           .in = channels,
                           .out = kWidths[group],
                           .taps = 9,
                           .pixels = pixels,
                           .norm = false});
      channels = kWidths[group];
    }
    pixels /= 2;
    x = builder.pool(fmt::format("pool{}", group + 1), x, channels * pixels * pixels, 4);
  }
  return with_classifier(builder, x, channels * pixels * pixels, target);
}

Graph inception_v3(int64_t batch) {
  Builder builder("inception_v3", batch);
  const ValueIndex image = builder.input("image", 3 * 299 * 299);
  const ValueIndex target = builder.input("target", 1);
  Inception x(builder, image, 3, 299);
  x.append({32, 9}, 149);
  x.append({32, 9}, 147);
  x.append({64, 9}, 147);
  x.append_pool(73);
  x.append({80, 1}, 73);
  x.append({192, 9}, 71);
  x.append_pool(35);
  for (const int64_t pooled : {32, 64, 64}) {
    x.branch({{64, 1}});
    x.branch({{48, 1}, {64, 25}});
    x.branch({{64, 1}, {96, 9}, {96, 9}});
    x.pooled(pooled, false);
    x.join("mixed_a");
  }
  x.branch({{384, 9, true}});
  x.branch({{64, 1}, {96, 9}, {96, 9, true}});
  x.pooled(0, true);
  x.join("mixed_b");
  for (const int64_t wide : {128, 160, 160, 192}) {
    x.branch({{192, 1}});
    x.branch({{wide, 1}, {wide, 7}, {192, 7}});
    x.branch({{wide, 1}, {wide, 7}, {wide, 7}, {wide, 7}, {192, 7}});
    x.pooled(192, false);
    x.join("mixed_c");
  }
  x.branch({{192, 1}, {320, 9, true}});
  x.branch({{192, 1}, {192, 7}, {192, 7}, {192, 9, true}});
  x.pooled(0, true);
  x.join("mixed_d");
  for (int i = 0; i < 2; ++i) {
    x.branch({{320, 1}});
    x.branch({{384, 1}, {384, 3}}, 3);
    x.branch({{448, 1}, {384, 9}, {384, 3}}, 3);
    x.pooled(192, false);
    x.join("mixed_e");
  }
  const ValueIndex mean = builder.pool("average", x.end(), 2048, 64);
  const ValueIndex scores = builder.linear("classifier", mean, 1, 2048, 1000);
  return builder.finish(builder.cross_entropy(scores, target, 1000));
}

}  // namespace renkei::graph
