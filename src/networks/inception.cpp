// Inception-v3 (Szegedy et al. 2015, arXiv:1512.00567). A block has parallel branches, whose
// channels are put one after another.
#include "base/error.h"
#include "networks/image_network.h"

namespace renkei::networks {
namespace {

using Kernel = Builder::Pair;

struct Unit {  // convolution, batch normalisation, ReLU
  std::string name;
  int64_t out;
  Kernel kernel;
  int64_t stride = 1;  // 1: padded so that the image keeps its size; 2: not padded
};
enum class Pool { none, average, max_stride_2 };
struct Branch {
  std::vector<Unit> chain;
  std::vector<Unit> ends = {};  // instead of one end several, all of them outputs
  Pool pool = Pool::none;       // before the chain
};
using Branches = std::vector<Branch>;

const Kernel k1x3{1, 3}, k3x1{3, 1}, k1x7{1, 7}, k7x1{7, 1};

// The five kinds of block, as the paper's figures 5 (A), 10 (B, D), 6 (C) and 7 (E) draw them.
Branches block_a(int64_t pool_channels) {
  return {
      {.chain = {{"branch1x1", 64, 1}}},
      {.chain = {{"branch5x5_1", 48, 1}, {"branch5x5_2", 64, 5}}},
      {.chain = {{"branch3x3dbl_1", 64, 1}, {"branch3x3dbl_2", 96, 3}, {"branch3x3dbl_3", 96, 3}}},
      {.chain = {{"branch_pool", pool_channels, 1}}, .pool = Pool::average}};
}

Branches block_b() {
  return {{.chain = {{"branch3x3", 384, 3, 2}}},
          {.chain = {{"branch3x3dbl_1", 64, 1},
                     {"branch3x3dbl_2", 96, 3},
                     {"branch3x3dbl_3", 96, 3, 2}}},
          {.chain = {}, .pool = Pool::max_stride_2}};
}

Branches block_c(int64_t inner) {
  return {{.chain = {{"branch1x1", 192, 1}}},
          {.chain = {{"branch7x7_1", inner, 1},
                     {"branch7x7_2", inner, k1x7},
                     {"branch7x7_3", 192, k7x1}}},
          {.chain = {{"branch7x7dbl_1", inner, 1},
                     {"branch7x7dbl_2", inner, k7x1},
                     {"branch7x7dbl_3", inner, k1x7},
                     {"branch7x7dbl_4", inner, k7x1},
                     {"branch7x7dbl_5", 192, k1x7}}},
          {.chain = {{"branch_pool", 192, 1}}, .pool = Pool::average}};
}

Branches block_d() {
  return {{.chain = {{"branch3x3_1", 192, 1}, {"branch3x3_2", 320, 3, 2}}},
          {.chain = {{"branch7x7x3_1", 192, 1},
                     {"branch7x7x3_2", 192, k1x7},
                     {"branch7x7x3_3", 192, k7x1},
                     {"branch7x7x3_4", 192, 3, 2}}},
          {.chain = {}, .pool = Pool::max_stride_2}};
}

Branches block_e() {
  return {{.chain = {{"branch1x1", 320, 1}}},
          {.chain = {{"branch3x3_1", 384, 1}},
           .ends = {{"branch3x3_2a", 384, k1x3}, {"branch3x3_2b", 384, k3x1}}},
          {.chain = {{"branch3x3dbl_1", 448, 1}, {"branch3x3dbl_2", 384, 3}},
           .ends = {{"branch3x3dbl_3a", 384, k1x3}, {"branch3x3dbl_3b", 384, k3x1}}},
          {.chain = {{"branch_pool", 192, 1}}, .pool = Pool::average}};
}

const Beginning kTruncated{.start = Start::truncated_normal, .deviation = 0.1};

// A convolution without bias of the given shape, normalised, with ReLU in place.
ValueId basic_unit(Builder& builder, ValueId x, std::string_view name, Convolution convolution) {
  const auto scope = builder.scope(name);
  convolution.bias = false;
  convolution.beginning = kTruncated;
  return builder.relu_(batch_norm(builder, conv2d(builder, x, "conv", convolution), "bn", 0.001));
}

ValueId unit_of_block(Builder& builder, ValueId x, const Unit& unit) {
  const bool keeps = unit.stride == 1;
  return basic_unit(
      builder, x, unit.name,
      {.out = unit.out,
       .kernel = unit.kernel,
       .stride = unit.stride,
       .padding = keeps ? Kernel{unit.kernel.height / 2, unit.kernel.width / 2} : Kernel{0}});
}

ValueId branch(Builder& builder, ValueId x, const Branch& branch) {
  if (branch.pool == Pool::average)
    x = builder.avg_pool2d(x, {.kernel = 3, .stride = 1, .padding = 1});
  if (branch.pool == Pool::max_stride_2) x = builder.max_pool2d(x, {.kernel = 3, .stride = 2});
  for (const Unit& unit : branch.chain) x = unit_of_block(builder, x, unit);
  if (branch.ends.empty()) return x;
  std::vector<ValueId> ends;
  for (const Unit& unit : branch.ends) ends.push_back(unit_of_block(builder, x, unit));
  return builder.cat(ends, 1);
}

ValueId block(Builder& builder, ValueId x, std::string_view name, const Branches& branches) {
  const auto scope = builder.scope(name);
  std::vector<ValueId> outputs;
  for (const Branch& one : branches) outputs.push_back(branch(builder, x, one));
  return builder.cat(outputs, 1);
}

ValueId stem(Builder& builder, ValueId x) {
  const Builder::Window pool{.kernel = 3, .stride = 2};
  x = basic_unit(builder, x, "Conv2d_1a_3x3", {.out = 32, .kernel = 3, .stride = 2});
  x = basic_unit(builder, x, "Conv2d_2a_3x3", {.out = 32, .kernel = 3});
  x = basic_unit(builder, x, "Conv2d_2b_3x3", {.out = 64, .kernel = 3, .padding = 1});
  x = builder.max_pool2d(x, pool, "maxpool1");
  x = basic_unit(builder, x, "Conv2d_3b_1x1", {.out = 80, .kernel = 1});
  x = basic_unit(builder, x, "Conv2d_4a_3x3", {.out = 192, .kernel = 3});
  return builder.max_pool2d(x, pool, "maxpool2");
}

ValueId auxiliary_head(Builder& builder, ValueId x, int64_t classes) {
  const auto scope = builder.scope("AuxLogits");
  x = builder.avg_pool2d(x, {.kernel = 5, .stride = 3});
  x = basic_unit(builder, x, "conv0", {.out = 128, .kernel = 1});
  x = basic_unit(builder, x, "conv1", {.out = 768, .kernel = 5});
  x = builder.flatten(builder.adaptive_avg_pool2d(x, 1), 1);
  return linear(
      builder, x, "fc",
      {.out = classes, .beginning = {.start = Start::truncated_normal, .deviation = 0.001}});
}

ImageOutputs inception(Builder& builder, ValueId images, const ImageOptions& options) {
  if (options.auxiliary && options.image_size < 299)
    throw Error(
        ErrorCode::usage,
        fmt::format("the auxiliary head of inception_v3 takes images of at least 299 pixels "
                    "a side, but model.image_size is {}",
                    options.image_size),
        "leave model.image_size at auto, or model.auxiliary at false");
  ImageOutputs outputs{program::kNoValue};
  ValueId x = stem(builder, images);
  x = block(builder, x, "Mixed_5b", block_a(32));
  x = block(builder, x, "Mixed_5c", block_a(64));
  x = block(builder, x, "Mixed_5d", block_a(64));
  x = block(builder, x, "Mixed_6a", block_b());
  x = block(builder, x, "Mixed_6b", block_c(128));
  x = block(builder, x, "Mixed_6c", block_c(160));
  x = block(builder, x, "Mixed_6d", block_c(160));
  x = block(builder, x, "Mixed_6e", block_c(192));
  if (options.auxiliary) outputs.auxiliary = auxiliary_head(builder, x, options.classes);
  x = block(builder, x, "Mixed_7a", block_d());
  x = block(builder, x, "Mixed_7b", block_e());
  x = block(builder, x, "Mixed_7c", block_e());
  x = builder.adaptive_avg_pool2d(x, 1, "avgpool");
  x = builder.flatten(builder.dropout(x, options.dropout.value_or(0.5), "dropout"), 1);
  outputs.main = linear(builder, x, "fc", {.out = options.classes, .beginning = kTruncated});
  return outputs;
}

}  // namespace

std::vector<NetworkDescription> inception_networks() {
  return {describe_image_network("inception_v3", "Inception-v3, its auxiliary head optional",
                                 {.image_size = 299, .least_image_size = 75}, inception)};
}

}  // namespace renkei::networks
