#include "run/loaded_libraries.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "base/error.h"
#include "base/file.h"
#include "run/executor.h"

namespace renkei::run {
namespace {

constexpr const char* kTwoTorches =
    "7f00-7f01 r-xp 0 fe:00 1 /a/torch/lib/libtorch_cpu.so\n"
    "7f02-7f03 r--p 0 fe:00 1 /a/torch/lib/libtorch_cpu.so\n"
    "7f04-7f05 r-xp 0 fe:00 2 /usr/lib/x86_64-linux-gnu/libtorch_cpu.so.1.13\n";

TEST(LoadedLibraries, ASecondTorchIsRefusedByItsPath) {
  try {
    check_libraries(kTwoTorches);
    FAIL() << "two were taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, ErrorCode::usage);
    EXPECT_NE(error.message.find("/usr/lib/x86_64-linux-gnu/libtorch_cpu.so.1.13"),
              std::string::npos);
  }
}

TEST(LoadedLibraries, ASecondOpenMpGetsAWarning) {
  const std::string warning = check_libraries(
      "7f00-7f01 r-xp 0 fe:00 1 /a/torch/lib/libgomp.so.1\n"
      "7f04-7f05 r-xp 0 fe:00 2 /opt/intel/libiomp5.so\n");
  EXPECT_NE(warning.find("/opt/intel/libiomp5.so"), std::string::npos);
  EXPECT_EQ(check_libraries("7f00-7f01 r-xp 0 fe:00 1 /a/torch/lib/libgomp.so.1\n"), "");
}

// This process has computed by Torch, and by our kernels with oneDNN, as a training does.
TEST(LoadedLibraries, AProcessThatComputesHasOneTorchOneOpenMpAndItsOneDnnApart) {
  const torch::Tensor image = torch::randn({1, 8, 6, 6}), filters = torch::randn({8, 8, 3, 3});
  program::Program program{.name = "convolution"};
  program.values = {{.name = "x"}, {.name = "w"}, {.name = "y"}};
  program.inputs = {{"x", 0}, {"w", 1}};
  program.outputs = {{"y", 2}};
  program.ops.push_back({.target = "renkei.conv.default",
                         .arguments = {{"input", program::Reference{0}},
                                       {"weight", program::Reference{1}},
                                       {"bias", program::None{}},
                                       {"stride", int64_t{2}},
                                       {"padding_height", int64_t{1}},
                                       {"padding_width", int64_t{1}},
                                       {"relu", false}},
                         .outputs = {2}});
  const Executor executor(program, whole(program));
  ExecutionContext context;
  const torch::Tensor blocked = image.view({1, 1, 8, 6, 6}).permute({0, 1, 3, 4, 2}).contiguous();
  const torch::Tensor made = executor.run(std::vector{blocked, filters}, {}, 1, context).at(0);
  const torch::Tensor expected = torch::conv2d(image, filters, {}, 2, 1);
  EXPECT_LT((made.permute({0, 1, 4, 2, 3}).reshape(expected.sizes()) - expected)
                .abs()
                .max()
                .item<float>(),
            1e-4);

  const std::string maps = read_file("/proc/self/maps");
  EXPECT_EQ(mapped_libraries(maps, {"libtorch_cpu.so"}).size(), 1u);
  EXPECT_EQ(mapped_libraries(maps, {"libgomp", "libomp", "libiomp5"}).size(), 1u);
  EXPECT_EQ(mapped_libraries(maps, {"libdnnl"}).size(), 1u);
  EXPECT_EQ(mapped_libraries(maps, {"libopenblas", "libblas", "libmkl"}).size(), 0u);
}

}  // namespace
}  // namespace renkei::run
