#include "dense/product.h"

namespace renkei::dense {
namespace {

TEST(Product, HasARateInBothPrecisions) {
  ASSERT_TRUE(have_products());
  for (const Precision precision : {Precision::f32, Precision::f64})
    for (const int order : {1, 33, 200})
      EXPECT_GT(product_flops_per_second(precision, order, 1, 2), 0) << order;
}

}  // namespace
}  // namespace renkei::dense
