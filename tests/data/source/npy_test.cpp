#include "data/source/npy.h"

#include "data/source/zip.h"
#include "tests/data/expect_error.h"
#include "tests/data/memory_file.h"
#include "tests/data/source/sample_files.h"

namespace renkei::data {
namespace {

constexpr ElementType kFloat{ElementKind::floating, 4, false};

TEST(Npy, ReadsBackWhatItWrites) {
  for (const ElementType type :
       {kByteElement, kFloat, ElementType{ElementKind::signed_integer, 8, true},
        ElementType{ElementKind::boolean, 1, false}})
    for (const std::vector<int64_t>& shape :
         {std::vector<int64_t>{}, {0}, {7}, {2, 3}, {2, 3, 4, 5}}) {
      const std::string header = make_npy_header(type, shape);
      EXPECT_EQ(header.size() % 64, 0u);
      const int64_t bytes = ArrayLayout{type, shape}.bytes();
      const NpyHeader read =
          parse_npy_header(header + std::string(static_cast<size_t>(bytes), 'x'), "a.npy");
      EXPECT_EQ(read.type, type);
      EXPECT_EQ(read.shape, shape);
      EXPECT_EQ(read.data_offset, static_cast<int64_t>(header.size()));
    }
}

std::string with_header(std::string text) {
  text.resize(118, ' ');
  return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + text + std::string(64, '\0');
}

TEST(Npy, RefusesWhatItCannotRead) {
  const auto parse = [](const std::string& text) { parse_npy_header(with_header(text), "a.npy"); };
  EXPECT_NO_THROW(parse("{'descr': '<f4', 'fortran_order': False, 'shape': (4, 4), }"));
  expect_error(ErrorCode::data, "does not hold plain numbers",
               [&] { parse("{'descr': '<U8', 'fortran_order': False, 'shape': (4,), }"); });
  expect_error(ErrorCode::data, "does not hold plain numbers", [&] {
    parse("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (4,), }");
  });
  expect_error(ErrorCode::data, "column by column",
               [&] { parse("{'descr': '<f4', 'fortran_order': True, 'shape': (4, 4), }"); });
  expect_error(ErrorCode::data, "no shape that makes sense",
               [&] { parse("{'descr': '<f4', 'fortran_order': False, 'shape': (-4, 4), }"); });
  expect_error(ErrorCode::data, "no shape that makes sense", [&] {
    parse("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }");
  });
  expect_error(ErrorCode::data, "no shape that makes sense",
               [&] { parse("{'descr': '<f4', 'fortran_order': False, 'shape': (4, 4"); });
  expect_error(ErrorCode::data, "does not fit into",
               [&] { parse("{'descr': '<f4', 'fortran_order': False, 'shape': (400, 4), }"); });
  expect_error(ErrorCode::data, "not a .npy array",
               [&] { parse_npy_header("\x93NUMPY", "a.npy"); });
}

template <typename T>
std::vector<T> converted(ElementType type, const std::string& bytes) {
  std::vector<T> numbers(bytes.size() / static_cast<size_t>(type.bytes));
  EXPECT_EQ(bytes_of(dtype_of(type)), static_cast<int64_t>(sizeof(T)));
  convert_elements(type, bytes, std::as_writable_bytes(std::span(numbers)));
  return numbers;
}

TEST(Element, TypesStayOrBecomeWider) {
  using enum ElementKind;
  using testing::ElementsAre;
  EXPECT_THAT(converted<uint8_t>(kByteElement, "\x01\xff"), ElementsAre(1, 255));
  EXPECT_THAT(converted<int8_t>({signed_integer, 1, false}, "\x01\xff"), ElementsAre(1, -1));
  EXPECT_THAT(converted<int32_t>({unsigned_integer, 2, true}, "\x01\x02"), ElementsAre(258));
  EXPECT_THAT(converted<int64_t>({unsigned_integer, 4, false}, as_bytes<uint32_t>({4'000'000'000})),
              ElementsAre(4'000'000'000));
  EXPECT_THAT(converted<int16_t>({signed_integer, 2, true}, "\xff\xfe"), ElementsAre(-2));
  EXPECT_THAT(converted<float>(kFloat, as_bytes<float>({0.5f, -3})), ElementsAre(0.5f, -3));
  EXPECT_THAT(converted<double>({floating, 8, false}, as_bytes<double>({0.1})), ElementsAre(0.1));
  EXPECT_THAT(converted<uint16_t>({floating, 2, true}, "\x3e\x01"), ElementsAre(0x3E01));
  EXPECT_EQ(dtype_of({floating, 2, false}), DType::f16);
  EXPECT_EQ(dtype_of({boolean, 1, false}), DType::boolean);
  EXPECT_EQ(dtype_of({unsigned_integer, 8, false}), DType::i64);
}

TEST(Zip, FindsStoredMembers) {
  const std::string bytes = zip({{"x.npy", "first"}, {"y.npy", "second!"}}, false);
  const MemoryFile file(bytes);
  const auto members = read_zip_directory(file);
  ASSERT_EQ(members.size(), 2u);
  EXPECT_EQ(members[1].name, "y.npy");
  EXPECT_FALSE(members[1].deflated);
  EXPECT_EQ(file.read(members[1].offset, members[1].size), "second!");
}

TEST(Zip, UnpacksDeflatedMembersWhole) {
  std::string content;
  for (int64_t i = 0; i < 200'000; ++i) content += static_cast<char>(i * i >> 7);
  const MemoryFile file(zip({{"x.npy", content}}, true));
  const auto members = read_zip_directory(file);
  ASSERT_EQ(members.size(), 1u);
  const auto unpacked = unpack_zip_member(file, members[0]);
  ASSERT_EQ(unpacked->size(), static_cast<int64_t>(content.size()));
  EXPECT_EQ(unpacked->read(0, unpacked->size()), content);
  EXPECT_EQ(unpacked->read(123'456, 100), content.substr(123'456, 100));
}

TEST(Zip, EveryDamagedByteIsNoticedOrHarmless) {
  const std::string content = "some content that is packed, some content that is packed";
  const std::string good = zip({{"x.npy", content}}, true);
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x55);
    const MemoryFile file(bad);
    try {
      for (const ZipMember& member : read_zip_directory(file))
        if (member.deflated) {
          const auto unpacked = unpack_zip_member(file, member);
          EXPECT_EQ(unpacked->read(0, unpacked->size()), content) << at;
        }
    } catch (const Error& error) {
      EXPECT_EQ(name_of(error.code), "data") << error.message;
    }
  }
}

TEST(Zip, EveryCutIsNoticed) {
  const std::string good = zip({{"x.npy", "content"}}, false);
  for (size_t length = 0; length < good.size(); ++length) {
    const MemoryFile file(good.substr(0, length));
    EXPECT_THROW(read_zip_directory(file), Error) << length;
  }
}

}  // namespace
}  // namespace renkei::data
