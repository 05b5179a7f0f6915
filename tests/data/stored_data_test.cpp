#include "data/stored_data.h"

#include <cmath>

#include "data/source/open_source.h"
#include "tests/data/expect_error.h"
#include "tests/data/field_values.h"
#include "tests/data/source/sample_files.h"
#include "tests/data/temporary_directory.h"
#include "tests/data/write_file.h"

namespace renkei::data {
namespace {

class Arrays : public testing::Test {
 protected:
  StoredData open(ElementType type, const std::vector<int64_t>& shape, std::string_view bytes) {
    const std::string path = (directory_.path() / "a.npz").string();
    write_test_file(path, zip({{"x.npy", npy(type, shape, bytes)},
                               {"y.npy", npy(kByteElement, {2}, std::string_view("\0\1", 2))}},
                              false));
    return StoredData(open_source(open_storage(path), {.path = path}),
                      {.transform = {.height = 2, .width = 2, .normalisation = {{}, {1, 1, 1}}},
                       .inputs = {{"input", {3, 2, 2}}}});
  }
  static std::vector<float> input(const StoredData& images, int64_t sample) {
    std::vector<float> numbers = input_of(images, sample);
    for (float& number : numbers) number = std::round(number * 255);
    return numbers;
  }

  TemporaryDirectory directory_;
};

TEST_F(Arrays, BytesAreImagesWithChannelsLastFirstOrNone) {
  std::string bytes(24, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i);
  using testing::ElementsAre;
  EXPECT_THAT(input(open(kByteElement, {2, 2, 2, 3}, bytes), 1),
              ElementsAre(12, 15, 18, 21, 13, 16, 19, 22, 14, 17, 20, 23));
  EXPECT_THAT(input(open(kByteElement, {2, 3, 2, 2}, bytes), 1),
              ElementsAre(12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23));
  EXPECT_THAT(input(open(kByteElement, {2, 2, 2}, bytes.substr(0, 8)), 1),
              ElementsAre(4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7));
}

TEST_F(Arrays, OtherNumbersAreTakenAsTheyAre) {
  std::vector<float> values(24);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) - 5;
  const auto images = open({ElementKind::floating, 4, false}, {2, 12}, as_bytes(values));
  EXPECT_EQ(input_of(images, 1), std::vector<float>(values.begin() + 12, values.end()));
  EXPECT_EQ(images.fields()[0].shape, (std::vector<int64_t>{3, 2, 2}));
  EXPECT_EQ(images.fields()[1].classes, 2);
  expect_error(ErrorCode::data, "has 6 numbers in the array x, and the network takes 12", [&] {
    open({ElementKind::floating, 4, false}, {2, 6}, as_bytes(values).substr(0, 48));
  });
}

TEST_F(Arrays, BytesAreNumbersForAProgramThatTakesNoImages) {
  const std::string path = (directory_.path() / "x.npy").string();
  write_test_file(path, npy(kByteElement, {2, 2, 2}, "abcdefgh"));
  const StoredData data(open_source(open_storage(path), {.path = path}),
                        {.inputs = {{"input", {4}}}});
  ASSERT_EQ(data.fields().size(), 1u);  // and no labels
  EXPECT_EQ(data.fields()[0].dtype, DType::u8);
  EXPECT_EQ(data.fields()[0].shape, (std::vector<int64_t>{4}));
  EXPECT_THAT(values_of<uint8_t>(data, 1, kInput), testing::ElementsAre('e', 'f', 'g', 'h'));
}

}  // namespace
}  // namespace renkei::data
