#include "model/weights.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "model/lenet.h"
#include "tests/base/temporary_directory.h"

namespace renkei::model {
namespace {

class Weights : public testing::Test {
 protected:
  std::string refusal(const NamedTensors& tensors) {
    write_tensors(file_, tensors);
    try {
      LeNet network(10);
      load_weights(network, file_);
    } catch (const Error& error) {
      EXPECT_EQ(error.code, ErrorCode::data);
      EXPECT_FALSE(error.hint.empty());
      return error.message;
    }
    return "";
  }

  test::TemporaryDirectory directory_;
  std::filesystem::path file_ = directory_.path() / "weights.pt";
};

TEST_F(Weights, ComeBackFromTheFile) {
  LeNet network(10), other(10);
  write_tensors(file_, named_state(network));
  load_weights(other, file_);
  for (const auto& named : network.named_parameters())
    EXPECT_TRUE(torch::equal(named.value(), other.named_parameters()[named.key()])) << named.key();
}

TEST_F(Weights, OfAnotherShapeAreRefusedByName) {
  EXPECT_NE(refusal(named_state(LeNet(9))).find("fc3.bias is 9 in the file and 10 in the network"),
            std::string::npos);
}

TEST_F(Weights, WithAMissingOrAnExtraNameAreRefused) {
  NamedTensors state = named_state(LeNet(10));
  state["more"] = torch::zeros(1);
  EXPECT_NE(refusal(state).find("the network has no more"), std::string::npos);
  state.erase("more");
  state.erase("conv1.bias");
  EXPECT_NE(refusal(state).find("it has no conv1.bias"), std::string::npos);
}

TEST_F(Weights, ThatAreSomethingElseAreRefused) {
  std::ofstream(file_) << "not a file of Torch's";
  EXPECT_THROW(read_tensors(file_), Error);
  EXPECT_THROW(read_tensors(directory_.path() / "missing.pt"), Error);
}

}  // namespace
}  // namespace renkei::model
