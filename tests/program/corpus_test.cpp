// Programs and sizes that lead to different places in their readers, and a few thousand damaged
// ones: data errors, and nothing else.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "tests/fuzz/damage.h"
#include "tests/fuzz/parse_program.h"

namespace renkei::program {
namespace {

// Digits, names and signs for others of their kind: what stays JSON gets further.
std::string exchange(const std::string& good, uint64_t number) {
  static const std::vector<std::string> words{"0",
                                              "-1",
                                              "9223372036854775807",
                                              "1e999",
                                              "null",
                                              "[]",
                                              "{}",
                                              "true",
                                              "\"f32\"",
                                              "\"batch//0\"",
                                              "\"s0\"",
                                              "\"\"",
                                              "{\"value\":1}",
                                              "[[]]",
                                              "\"batch*batch*batch*9223372036854775807\""};
  Random random(2, RandomUse::synth_image, 0, number);
  std::string text = good;
  for (uint32_t change = 0; change < 1 + random.below(3); ++change) {
    const size_t from = text.find_first_of(":,[", random.below(static_cast<uint32_t>(text.size())));
    if (from == text.npos) continue;
    const size_t end = text.find_first_of(",]}", from + 1);
    if (end == text.npos) continue;
    text.replace(from + 1, end - from - 1,
                 words[random.below(static_cast<uint32_t>(words.size()))]);
  }
  return text;
}

TEST(ProgramCorpus, MakesNoOtherErrorGoodOrDamaged) {
  int files = 0, read = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(RENKEI_CORPUS) / "program")) {
    const std::string good = read_file(entry.path());
    EXPECT_NO_THROW(expect_no_other_error(parse_program, good)) << entry.path();
    for (uint64_t number = 0; number < 300; ++number)
      for (const std::string& bytes : {damage(good, number), exchange(good, number)})
        EXPECT_NO_THROW(expect_no_other_error(
            [&](std::string_view text) { parse_program(text), ++read; }, bytes))
            << entry.path() << " " << number << "\n"
            << bytes;
    ++files;
  }
  EXPECT_GE(files, 10);
  EXPECT_GE(read, 100);  // enough damage is harmless, so that it reaches what is behind the reader
}

}  // namespace
}  // namespace renkei::program
