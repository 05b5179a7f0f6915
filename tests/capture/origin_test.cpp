#include "capture/origin.h"

#include <gtest/gtest.h>

namespace renkei::capture {
namespace {

TEST(Origin, IsTheLastLineThatIsNotOfPyTorch) {
  EXPECT_EQ(source_from_trace("File \"/home/u/train.py\", line 3, in <module>\n    net(x)\n"
                              "  File \"/home/u/net.py\", line 12, in forward\n    return f(x)\n"
                              "  File \"/x/site-packages/torch/nn/conv.py\", line 5, in forward\n"),
            "net.py:12 in forward");
  EXPECT_EQ(source_from_trace("File \"torch/fx/passes.py\", line 24, in insert"), "");
  EXPECT_EQ(source_from_trace("File \"/home/u/torch/net.py\", line 1, in f"), "net.py:1 in f");
  EXPECT_EQ(source_from_trace("File \"net.py"), "");
}

TEST(Origin, IsTheInnermostModule) {
  EXPECT_EQ(module_from_stack("L__self__,,net.Net;L__self__a,layer1.0,net.Block"), "layer1.0");
  EXPECT_EQ(module_from_stack("L__self__,,net.Net"), "");
  EXPECT_EQ(module_from_stack("k,relu@1,torch.nn.ReLU"), "relu");
  EXPECT_EQ(module_from_stack("nonsense"), "");
}

}  // namespace
}  // namespace renkei::capture
