// Texts that lead to different places in their readers (tests/fuzz/corpus), and some hundred
// damaged ones of each: sentences, and nothing else. RENKEI_DAMAGED=1000000 asks for more.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "tests/fuzz/damage.h"
#include "tests/fuzz/parse_texts.h"

namespace renkei {
namespace {

// Numbers, words and lists for others of their kind: what stays JSON or TOML gets further.
std::string exchange(const std::string& good, uint64_t number) {
  static const std::vector<std::string> words{"0",
                                              "-1",
                                              "9223372036854775807",
                                              "-9223372036854775808",
                                              "1e999",
                                              "nan",
                                              "[]",
                                              "{}",
                                              "null",
                                              "true",
                                              "\"\"",
                                              "\"../../x\"",
                                              "7",
                                              "[[",
                                              "1e308",
                                              "\"auto\"",
                                              "\"\\ud800\"",
                                              "18446744073709551616"};
  Random random(2, RandomUse::synth_image, 0, number);
  std::string text = good;
  for (uint32_t change = 0; change < 1 + random.below(3); ++change) {
    const size_t from =
        text.find_first_of(":,[=", random.below(static_cast<uint32_t>(text.size())));
    if (from == text.npos) continue;
    const size_t end = text.find_first_of(",]}\n", from + 1);
    if (end == text.npos) continue;
    text.replace(from + 1, end - from - 1,
                 words[random.below(static_cast<uint32_t>(words.size()))]);
  }
  return text;
}

struct Kind {
  const char* folder;
  void (*parse)(std::string_view);
};

class TextCorpus : public testing::TestWithParam<Kind> {};

TEST_P(TextCorpus, MakesNoOtherErrorGoodOrDamaged) {
  const char* more = std::getenv("RENKEI_DAMAGED");
  const uint64_t damaged = more ? std::strtoull(more, nullptr, 10) : 150;
  int files = 0, read = 0;
  const auto folder = std::filesystem::path(RENKEI_CORPUS) / GetParam().folder;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string good = read_file(entry.path());
    const auto parse = [&](std::string_view text) { GetParam().parse(text), ++read; };
    EXPECT_NO_THROW(expect_text_error_only(parse, good)) << entry.path();
    for (uint64_t number = 0; number < damaged; ++number)
      for (const std::string& bytes : {damage(good, number), exchange(good, number)})
        ASSERT_NO_THROW(expect_text_error_only(parse, bytes))
            << entry.path() << " " << number << "\n"
            << bytes;
    ++files;
  }
  EXPECT_GE(files, 3);
  EXPECT_GE(read, files);  // the good ones are good, and some damage is harmless
}

INSTANTIATE_TEST_SUITE_P(Texts, TextCorpus,
                         testing::Values(Kind{"manifest", parse_manifest_text},
                                         Kind{"plan", parse_plan_text},
                                         Kind{"graph", parse_graph_text},
                                         Kind{"cluster", parse_cluster_text},
                                         Kind{"settings", parse_settings_text}),
                         [](const auto& test) { return test.param.folder; });

}  // namespace
}  // namespace renkei
