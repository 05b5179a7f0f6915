#include "program/print.h"

#include <gtest/gtest.h>

#include "tests/program/sample_program.h"

namespace renkei::program {
namespace {

TEST(PrintedProgram, HasAnOperationALine) {
  EXPECT_EQ(print(sample_program()),
            "program sample\n"
            "size    batch from 1 to 1024, the batch\n"
            "input   %x f32[batch, 3, 8, 8]\n"
            "%7 f32[batch, 4, 8, 8] = aten.conv2d(%x, conv.weight, stride=[1, 1], padding=[1, 1])"
            "  # conv, net.py:12 in forward\n"
            "%8 i64[] = aten.add_.Tensor(norm.num_batches_tracked, other=1)"
            "  # norm, net.py:12 in forward\n"
            "%9 f32[batch, 4, 8, 8] = aten.batch_norm(%7, norm.weight, norm.bias, "
            "norm.running_mean, norm.running_var, training=true, momentum=0.1, eps=1e-05, "
            "cudnn_enabled=true)  # norm, net.py:12 in forward\n"
            "%10 f32[batch, 4, 8, 8] = aten.relu_(%9)  # relu, net.py:12 in forward\n"
            "%11 f32[batch, 4, 8, 8] = aten.dropout(%10, p=0.5, train=true)"
            "  # dropout, net.py:12 in forward\n"
            "%12 f32[batch, 256] = aten.flatten.using_ints(%11, start_dim=1)"
            "  # net.py:12 in forward\n"
            "output  y = %12\n");
}

TEST(PrintedProgram, ShowsEveryKindOfArgument) {
  Program program = sample_program();
  const Op op{.target = "a.b.c",
              .arguments = {{"none", None{}},
                            {"x", Reference{6}},
                            {"list", List{Reference{7}, 1.0, List{}}},
                            {"text", std::string("same")},
                            {"dtype", DType::bf16},
                            {"word", Word{"cpu"}}},
              .outputs = {kNoValue, 12},
              .no_grad = true};
  EXPECT_EQ(print(program, op),
            "_, %12 f32[batch, 256] = a.b.c(none=none, x=%x, list=[%7, 1.0, []], text=\"same\", "
            "dtype=bf16, word=cpu)  # no_grad");
  EXPECT_EQ(print(Value{.name = "n", .kind = ValueKind::integer}), "integer");
}

}  // namespace
}  // namespace renkei::program
