#include "data/s3/xml.h"

#include <gtest/gtest.h>

namespace renkei::data {
namespace {

TEST(Xml, FindsElementsByTheirWholeName) {
  const std::string xml =
      "<?xml version=\"1.0\"?><L "
      "xmlns=\"x\"><KeyCount>2</KeyCount><Key>a</Key><Key>b</Key><Key/></L>";
  const auto found = xml_elements(xml, "Key");
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0], "a");
  EXPECT_EQ(found[1], "b");
  EXPECT_EQ(found[2], "");
  EXPECT_EQ(xml_text(xml, "KeyCount"), "2");
  EXPECT_EQ(xml_text(xml, "Count"), "");
  EXPECT_EQ(xml_elements(xml, "L").size(), 1u);
}

TEST(Xml, ReplacesEntities) {
  EXPECT_EQ(xml_text("<Key>a&amp;b&lt;c&#233;&#x20AC;&#x1F600;&other;&</Key>", "Key"),
            "a&b<c\u00e9\u20ac\U0001F600&other;&");
  const std::string odd = "<a & \"b\" 'c'>";
  EXPECT_EQ(xml_text("<Key>" + escape_xml(odd) + "</Key>", "Key"), odd);
}

TEST(Xml, WhatIsCutOffIsNotThere) {
  EXPECT_TRUE(xml_elements("<Key>a", "Key").empty());
  EXPECT_TRUE(xml_elements("<Key", "Key").empty());
  EXPECT_TRUE(xml_elements("", "Key").empty());
}

}  // namespace
}  // namespace renkei::data
