#include "capture/state_dict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/temporary_directory.h"
#include "tests/base/thrown_error.h"
#include "tests/capture/sample_models.h"

namespace renkei::capture {
namespace {

using testing::HasSubstr;

NamedTensors read(const std::string& pickle) {
  return read_state_dict(memory_file(state_dict_file(pickle)));
}

Error refusal(const std::string& pickle) {
  Error error = test::thrown_error([&] { read(pickle); });
  EXPECT_EQ(error.code, ErrorCode::data);
  EXPECT_FALSE(error.hint.empty()) << error.message;
  return error;
}

TEST(StateDict, TensorsAreReadByName) {
  const NamedTensors tensors = read(pickled_dictionary({{"a", pickled_tensor()}}));
  ASSERT_EQ(tensors.size(), 1u);
  EXPECT_THAT(tensors.at("a").sizes, testing::ElementsAre(2, 2));
  EXPECT_EQ(tensors.at("a").read_all(), float_bytes({1, 2, 3, 4}));
}

TEST(StateDict, AreWrittenAndReadAgain) {
  const test::TemporaryDirectory directory;
  const std::string path = directory / "net.pt";
  NamedTensors tensors =
      read(pickled_dictionary({{"a", pickled_tensor()}, {"b", pickled_tensor()}}));
  tensors["none"] = {.dtype = program::DType::i64, .sizes = {0, 3}, .read = tensors["a"].read};
  tensors["one"] = {.sizes = {}, .read = tensors["a"].read};
  write_state_dict(path, tensors);
  const NamedTensors again = read_state_dict(path);
  ASSERT_EQ(again.size(), 4u);
  for (const auto& [name, tensor] : tensors) {
    EXPECT_EQ(again.at(name).dtype, tensor.dtype) << name;
    EXPECT_EQ(again.at(name).sizes, tensor.sizes) << name;
    EXPECT_EQ(again.at(name).read_all(), tensor.read_all()) << name;
  }
}

TEST(StateDict, OfACheckpointIsItsOneDictionaryOfTensors) {
  const std::string inner = pickled_dictionary({{"a", pickled_tensor()}});
  EXPECT_EQ(read(pickled_dictionary({{"epoch", "K\x03"}, {"state_dict", inner}})).size(), 1u);
  EXPECT_THAT(refusal(pickled_dictionary({{"model", inner}, {"ema", inner}})).message,
              HasSubstr("several state dicts: model, ema"));
  EXPECT_THAT(refusal(pickled_dictionary({{"epoch", "K\x03"}})).message,
              HasSubstr("holds no dictionary of tensors"));
}

TEST(StateDict, CodeIsRefusedByItsName) {
  const std::string call = "cposix\nsystem\n(X\x02" + std::string(3, '\0') + "lstR";
  EXPECT_THAT(refusal(pickled_dictionary({{"a", pickled_tensor()}, {"b", call}})).message,
              HasSubstr("uses posix.system, which is code"));
  EXPECT_THAT(refusal(pickled_dictionary({{"n", "cnumpy.core.multiarray\nscalar\n)R"}})).message,
              HasSubstr("uses numpy.core.multiarray.scalar, which is code"));
  EXPECT_THAT(refusal(pickled_dictionary({{"n", "cargparse\nNamespace\n)\x81}b"}})).message,
              HasSubstr("uses argparse.Namespace, which is code"));
  EXPECT_THAT(refusal(pickled_dictionary({{"n", "cnumpy.core.multiarray\nscalar\n)R"}})).hint,
              HasSubstr("model.state_dict()"));
}

TEST(StateDict, TensorsBeyondTheirBytesAreRefused) {
  EXPECT_THAT(refusal(pickled_dictionary({{"a", pickled_tensor("DoubleStorage")}})).message,
              HasSubstr("'a' has 32 bytes, which do not fit into the 16"));
  EXPECT_THAT(refusal(pickled_dictionary({{"a", pickled_tensor("QInt8Storage")}})).message,
              HasSubstr("QInt8Storage"));
}

TEST(StateDict, DamagedPicklesAreRefused) {
  for (const std::string pickle : {"", "t", "R", "u", "Q", "0", "h\x01", "q\x01", "(((", "\x81",
                                   "X\xFF\xFF\xFF\xFF", "K\x01K\x02s", "\x8a\xFF", "ca\nb"})
    EXPECT_EQ(refusal(pickle).code, ErrorCode::data);
}

TEST(StateDict, OtherFilesGetTheWayToAModel) {
  const auto error = [](std::string bytes) {
    return test::thrown_error([&] { read_state_dict(memory_file(std::move(bytes))); });
  };
  EXPECT_THAT(error(state_dict_file("}", {{"net/constants.pkl", ""}})).hint, HasSubstr(".pt2"));
  EXPECT_THAT(error(state_dict_file("}", {{"net/archive_format", "pt2"}})).message,
              HasSubstr("is a .pt2 file"));
  EXPECT_THAT(error("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.").message,
              HasSubstr("before PyTorch 1.6"));
}

}  // namespace
}  // namespace renkei::capture
