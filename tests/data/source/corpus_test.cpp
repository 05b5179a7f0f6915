// What libFuzzer collected: inputs that lead to different places in the parsers, and those that
// once led to a fault.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "tests/fuzz/parse.h"

namespace renkei::data {
namespace {

template <typename Parse>
void replay(const char* format, Parse parse) {
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(RENKEI_CORPUS) / format)) {
    EXPECT_NO_THROW(expect_no_other_error(parse, read_file(entry.path()))) << entry.path();
    ++files;
  }
  EXPECT_GE(files, 5);
}

TEST(Corpus, OfTarArchivesMakesNoOtherError) {
  replay("tar", parse_tar);
}

TEST(Corpus, OfTextIndicesMakesNoOtherError) {
  replay("idx", parse_idx);
}

TEST(Corpus, OfShardIndicesMakesNoOtherError) {
  replay("index", parse_index);
}

TEST(Corpus, OfNpzFilesMakesNoOtherError) {
  replay("npz", parse_npz);
}

TEST(Corpus, OfTfRecordsMakesNoOtherError) {
  replay("tfrecord", parse_tfrecord);
}

#ifdef RENKEI_HAVE_JPEG
TEST(Corpus, OfImagesMakesNoOtherError) {
  replay("image", parse_image);
}
#endif

#ifdef RENKEI_HAVE_HDF5
TEST(Corpus, OfHdf5FilesMakesNoOtherError) {
  replay("hdf5", parse_hdf5);
}
#endif

}  // namespace
}  // namespace renkei::data
