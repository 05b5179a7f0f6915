// Damaged model files, and what libFuzzer collected of them: each is read, or a data Error.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "tests/fuzz/damage.h"
#include "tests/fuzz/parse_models.h"

namespace renkei::capture {
namespace {

template <typename Parse>
void run(Parse parse, const std::string& good) {
  EXPECT_NO_THROW(parse(good));
  for (uint64_t number = 0; number < 1500; ++number)
    EXPECT_NO_THROW(expect_no_other_error(parse, damage(good, number))) << number;
}

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

TEST(ModelDamage, OfPt2FilesIsADataError) {
  run(parse_pt2, SampleModel().model_json());
  run(parse_pt2, SampleModel().bytes());
}

TEST(ModelDamage, OfSafetensorsIsADataError) {
  const std::string header = R"({"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}})";
  run(parse_safetensors, header);
  run(parse_safetensors, safetensors_file(header, std::string(16, 'x')));
}

TEST(ModelDamage, OfStateDictsIsADataError) {
  const std::string pickle = pickled_dictionary({{"a", pickled_tensor()}});
  run(parse_state_dict, pickle);
  run(parse_state_dict, state_dict_file(pickle));
}

TEST(ModelCorpus, OfPt2FilesMakesNoOtherError) {
  replay("pt2", parse_pt2);
}

TEST(ModelCorpus, OfSafetensorsMakesNoOtherError) {
  replay("safetensors", parse_safetensors);
}

TEST(ModelCorpus, OfStateDictsMakesNoOtherError) {
  replay("state_dict", parse_state_dict);
}

}  // namespace
}  // namespace renkei::capture
