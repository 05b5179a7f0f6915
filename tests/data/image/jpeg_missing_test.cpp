#include "data/image/jpeg.h"
#include "data/synth.h"
#include "tests/data/expect_error.h"
#include "tests/data/temporary_directory.h"

namespace renkei::data {
namespace {

static_assert(!kHaveJpeg);

TEST(JpegMissing, SaysHowToGetIt) {
  expect_error(ErrorCode::usage, "built without JPEG support", [] { encode_jpeg(Image{}, 90); });
  expect_error(ErrorCode::usage, "built without JPEG support", [] { decode_jpeg("", "a.jpg"); });
}

TEST(JpegMissing, SynthLeavesNothingBehind) {
  const TemporaryDirectory temporary;
  expect_error(ErrorCode::usage, "built without JPEG support",
               [&] { write_synth({.directory = temporary.path() / "shapes"}); });
  EXPECT_TRUE(std::filesystem::is_empty(temporary.path()));
}

}  // namespace
}  // namespace renkei::data
