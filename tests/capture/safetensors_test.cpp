#include "capture/safetensors.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "tests/base/temporary_directory.h"
#include "tests/base/thrown_error.h"
#include "tests/capture/sample_models.h"

namespace renkei::capture {
namespace {

using program::DType;
using testing::HasSubstr;

constexpr const char* kHeader =
    R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"I8","shape":[3],"data_offsets":[8,11]}})";

std::string refusal(const std::string& header, const std::string& content) {
  const Error error =
      test::thrown_error([&] { read_safetensors(memory_file(safetensors_file(header, content))); });
  EXPECT_EQ(error.code, ErrorCode::data);
  EXPECT_FALSE(error.hint.empty()) << error.message;
  return error.message;
}

TEST(Safetensors, AreReadByName) {
  const NamedTensors tensors =
      read_safetensors(memory_file(safetensors_file(kHeader, float_bytes({1, 2}) + "xyz")));
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors.at("a").read_all(), float_bytes({1, 2}));
  EXPECT_EQ(tensors.at("b").dtype, DType::i8);
  EXPECT_EQ(tensors.at("b").read_all(), "xyz");
}

TEST(Safetensors, AreWrittenAndReadAgain) {
  const test::TemporaryDirectory directory;
  const std::string path = (directory.path() / "w.safetensors").string();
  const std::string large(20 << 20, 'q');
  NamedTensors tensors;
  const auto add = [&](const std::string& name, DType dtype, std::vector<int64_t> sizes,
                       const std::string& bytes) {
    tensors[name] = {dtype, std::move(sizes), [bytes](int64_t begin, std::span<char> into) {
                       std::memcpy(into.data(), bytes.data() + begin, into.size());
                     }};
  };
  add("flag", DType::boolean, {3}, {"\1\0\1", 3});
  add("large", DType::u8, {20, 1 << 20}, large);
  add("number", DType::f64, {}, std::string(8, 'x'));
  add("nothing", DType::f32, {0, 5}, "");
  write_safetensors(path, tensors, {{"format", "pt"}});
  const NamedTensors again = read_safetensors(path);
  ASSERT_EQ(again.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    EXPECT_EQ(again.at(name).dtype, tensor.dtype);
    EXPECT_EQ(again.at(name).sizes, tensor.sizes);
    EXPECT_TRUE(again.at(name).read_all() == tensor.read_all()) << name;
  }
}

TEST(Safetensors, GapsOverlapsAndRestsAreRefused) {
  const auto header = [](int64_t begin, int64_t end) {
    return fmt::format(
        R"({{"a":{{"dtype":"U8","shape":[4],"data_offsets":[0,4]}},"b":{{"dtype":"U8","shape":[4],"data_offsets":[{},{}]}}}})",
        begin, end);
  };
  EXPECT_EQ(read_safetensors(memory_file(safetensors_file(header(4, 8), "12345678"))).size(), 2u);
  EXPECT_THAT(refusal(header(5, 9), "123456789"), HasSubstr("'b' begins at 5 and not at 4"));
  EXPECT_THAT(refusal(header(2, 6), "123456"), HasSubstr("begins at 2"));
  EXPECT_THAT(refusal(header(4, 8), "123456789"), HasSubstr("have 8 bytes, and it has 9"));
  EXPECT_THAT(refusal(header(4, 8), "123"), HasSubstr("do not fit together"));
  EXPECT_THAT(refusal(header(4, 9), "123456789"), HasSubstr("do not fit together"));
  EXPECT_THAT(refusal(header(-4, 0), "1234"), HasSubstr("do not fit together"));
}

TEST(Safetensors, HeadersThatAreNoneAreRefused) {
  EXPECT_THAT(refusal("[]", ""), HasSubstr("not a safetensors file"));
  EXPECT_THAT(refusal("{", ""), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"F8_E4M3","shape":[],"data_offsets":[0,1]}})", "1"),
              HasSubstr("F8_E4M3"));
  EXPECT_THAT(
      refusal(R"({"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", ""),
      HasSubstr("do not fit together"));
  const auto length = [](uint64_t claimed) {
    return test::thrown_error(
               [&] { read_safetensors(memory_file(data::little_endian(claimed) + "{}")); })
        .message;
  };
  EXPECT_THAT(length(3), HasSubstr("claims 3 bytes"));
  EXPECT_THAT(length(UINT64_MAX), HasSubstr("not a safetensors file"));
  EXPECT_THAT(test::thrown_error([] { read_safetensors(memory_file("1234")); }).message,
              HasSubstr("too short"));
}

}  // namespace
}  // namespace renkei::capture
