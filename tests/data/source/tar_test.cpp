#include "data/source/tar.h"

#include "data/source/dali_index.h"
#include "tests/data/expect_error.h"
#include "tests/data/memory_file.h"
#include "tests/data/source/sample_files.h"

namespace renkei::data {
namespace {

std::vector<TarMember> members_of(const std::string& archive) {
  const MemoryFile file(archive, "a.tar");
  std::vector<TarMember> members;
  TarReader reader(file);
  while (auto member = reader.next()) members.push_back(*member);
  return members;
}

std::string with_checksum(std::string header) {
  header.replace(148, 8, "        ");
  int sum = 0;
  for (const char byte : header) sum += static_cast<unsigned char>(byte);
  return header.replace(148, 7, fmt::format("{:06o}", sum) + std::string(1, '\0'));
}

// A header as other programs write them: any type, size field and magic.
std::string header_with(std::string_view name, char type, std::string_view size,
                        std::string_view magic) {
  std::string header = make_tar_header(name, 0);
  header.replace(124, size.size(), size);
  header[156] = type;
  header.replace(257, magic.size(), magic);
  return with_checksum(header);
}

TEST(Tar, FindsTheDataOfEveryMember) {
  const std::string archive = tar_member("a.jpg", std::string(700, 'x')) +
                              tar_member("a.cls", "3") + tar_member("empty.txt", "") + tar_end();
  const auto members = members_of(archive);
  ASSERT_EQ(members.size(), 3u);
  EXPECT_EQ(members[0].name, "a.jpg");
  EXPECT_EQ(members[0].offset, 512);
  EXPECT_EQ(members[0].size, 700);
  EXPECT_EQ(members[1].offset, 512 + 1024 + 512);
  EXPECT_EQ(archive.substr(static_cast<size_t>(members[1].offset), 1), "3");
  EXPECT_EQ(members[2].size, 0);
}

TEST(Tar, ReadsLongNamesOfPaxAndGnu) {
  const std::string name = std::string(90, 'd') + "/" + std::string(150, 'n') + ".jpg";
  std::string gnu = header_with("././@LongLink", 'L', fmt::format("{:011o}", name.size() + 1),
                                std::string_view("ustar  \0", 8));
  gnu += name + std::string(512 - name.size(), '\0') + tar_member("cut", "gnu");
  for (const std::string& archive : {tar_member(name, "pax"), gnu}) {
    const auto members = members_of(archive);
    ASSERT_EQ(members.size(), 1u);
    EXPECT_EQ(members[0].name, name);
    EXPECT_EQ(members[0].offset, 3 * 512);
    EXPECT_EQ(members[0].size, 3);
  }
}

TEST(Tar, JoinsThePrefixOfUstarAndNotOfGnu) {
  for (const auto& [magic, name] : {std::pair{std::string_view("ustar\0", 6), "a/b.jpg"},
                                    std::pair{std::string_view("ustar ", 6), "b.jpg"}}) {
    std::string header = header_with("b.jpg", '0', "", magic);
    header[345] = 'a';
    EXPECT_EQ(members_of(with_checksum(header))[0].name, name);
  }
}

TEST(Tar, ReadsBinarySizes) {
  std::string size(12, '\0');
  size[0] = '\x80';
  size[11] = '\x05';
  const auto members =
      members_of(header_with("a", '0', size, "") + "12345" + std::string(507, '\0'));
  ASSERT_EQ(members.size(), 1u);
  EXPECT_EQ(members[0].size, 5);
}

TEST(Tar, PassesOverDirectoriesAndLinks) {
  // A link may claim the size of what it points to, and has no data.
  const std::string archive = header_with("dir/", '5', "", "") +
                              header_with("link", '2', "00000001000", "") + tar_member("a", "x");
  const auto members = members_of(archive);
  ASSERT_EQ(members.size(), 1u);
  EXPECT_EQ(members[0].name, "a");
}

TEST(Tar, EveryCutIsNoticedOrHarmless) {
  const std::string archive = tar_member("a.jpg", std::string(600, 'x')) + tar_member("a.cls", "3");
  for (size_t length = 0; length <= archive.size(); length += 64) {
    const std::string part = archive.substr(0, length);
    // Between members, and within the zeros after the last byte, nothing is lost.
    const bool harmless = length == 0 || (length >= 512 + 600 && length <= 1536) || length > 2048;
    if (harmless)
      EXPECT_NO_THROW(members_of(part)) << length;
    else
      expect_error(ErrorCode::data, "a.tar: the tar archive ends within",
                   [&] { members_of(part); });
  }
}

TEST(Tar, AWrongChecksumNamesItsOffset) {
  std::string archive = tar_member("a.jpg", "x") + tar_member("b.jpg", "y");
  archive[1024 + 3] = '!';
  expect_error(ErrorCode::data, "wrong checksum (at offset 1024)", [&] { members_of(archive); });
}

TEST(Tar, RefusesHostileHeaders) {
  const std::string huge = header_with("a", '0', "77777777777", "");
  expect_error(ErrorCode::data, "ends within its member 'a'", [&] { members_of(huge); });
  const std::string long_name = header_with("a", 'L', "77777777777", "");
  expect_error(ErrorCode::data, "has a name of", [&] { members_of(long_name); });
  const std::string octal = header_with("a", '0', "99999999999", "");
  expect_error(ErrorCode::data, "without a size", [&] { members_of(octal); });
  for (const char* record :
       {"5 path=a\n", "999 path=a\n", "x", "10 path=ab", "3 \n", "11 sizeeee1\n", "10 size=x\n"}) {
    const std::string text = record;
    const std::string pax = header_with("p", 'x', fmt::format("{:011o}", text.size()), "") + text +
                            std::string(512 - text.size(), '\0');
    expect_error(ErrorCode::data, "damaged pax header", [&] { members_of(pax); });
  }
}

TEST(Tar, SplitsNamesAtTheFirstDotOfTheFile) {
  const auto split = [](std::string_view name) {
    const auto parts = split_tar_name(name);
    return parts ? fmt::format("{}|{}", parts->key, parts->extension) : "none";
  };
  EXPECT_EQ(split("a/b.seg.png"), "a/b|seg.png");
  EXPECT_EQ(split("v1.0/b.jpg"), "v1.0/b|jpg");
  EXPECT_EQ(split("nodot"), "none");
  EXPECT_EQ(split("a/.hidden"), "none");
}

TEST(DaliIndex, HoldsDataOffsetsAlsoOfLongNames) {
  const std::string name(120, 'n');
  const MemoryFile file(tar_member("a.jpg", "1234") + tar_member("a.cls", "7") +
                        tar_member(name + ".jpg", "12") + tar_end());
  const auto samples = scan_tar(file);
  EXPECT_EQ(format_dali_index(samples),
            fmt::format("v1.2 2\njpg 512 4 a.jpg cls 1536 1 a.cls\njpg 3584 2 {}.jpg\n", name));
  EXPECT_EQ(parse_dali_index(format_dali_index(samples), "a.idx", file.size()), samples);
}

TEST(DaliIndex, ReadsVersionWithoutNames) {
  const auto samples = parse_dali_index("v1.1 1\njpg 512 4 cls 1536 1\n", "a.idx", 4096);
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_EQ(samples[0][1], (TarComponent{.extension = "cls", .offset = 1536, .size = 1}));
}

TEST(DaliIndex, NamesTheLineThatIsWrong) {
  const auto parse = [](std::string_view text) { parse_dali_index(text, "a.idx", 4096); };
  expect_error(ErrorCode::data, "a.idx line 1", [&] { parse(""); });
  expect_error(ErrorCode::data, "a.idx line 1", [&] { parse("v2.0 1\n"); });
  expect_error(ErrorCode::data, "claims 99999999 samples", [&] { parse("v1.2 99999999\n"); });
  expect_error(ErrorCode::data, "a.idx line 3: the index ends too early",
               [&] { parse("v1.2 2\njpg 512 4 a.jpg\n"); });
  expect_error(ErrorCode::data, "has 3 fields", [&] { parse("v1.2 1\njpg 512 4\n"); });
  expect_error(ErrorCode::data, "'-4' where a number", [&] { parse("v1.2 1\njpg 512 -4 a\n"); });
  expect_error(ErrorCode::data, "puts 4 bytes at offset 513",
               [&] { parse("v1.2 1\njpg 513 4 a\n"); });
  expect_error(ErrorCode::data, "puts 4000 bytes at offset 512",
               [&] { parse("v1.2 1\njpg 512 4000 a\n"); });
}

TEST(DaliIndex, RefusesNamesWithBlanks) {
  const MemoryFile file(tar_member("a b.jpg", "1234"));
  expect_error(ErrorCode::data, "'a b.jpg' has a blank",
               [&] { format_dali_index(scan_tar(file)); });
}

}  // namespace
}  // namespace renkei::data
