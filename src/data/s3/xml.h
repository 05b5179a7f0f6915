// As much XML as the answers of object storage need: elements by name, and their text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace renkei::data {

// What stands between <name …> and </name>, for each one in `xml`, whatever it is inside of.
// Elements of the same name inside of each other are not told apart; S3 has none.
std::vector<std::string_view> xml_elements(std::string_view xml, std::string_view name);

// The text of the first one, with &amp; and its like replaced; empty when there is none.
std::string xml_text(std::string_view xml, std::string_view name);

std::string escape_xml(std::string_view text);

}  // namespace renkei::data
