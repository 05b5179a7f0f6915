#include "data/s3/xml.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <utility>

namespace renkei::data {
namespace {

constexpr std::array<std::pair<std::string_view, char>, 5> kNames{
    {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}}};

void append_utf8(uint32_t code, std::string& text) {
  const auto put = [&](uint32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

// "#10", "#xA", "amp"; false: unknown, and left as it is.
bool append_entity(std::string_view name, std::string& text) {
  for (const auto& [known, letter] : kNames)
    if (name == known) {
      text += letter;
      return true;
    }
  if (!name.starts_with('#')) return false;
  const bool hexadecimal = name.starts_with("#x");
  name.remove_prefix(hexadecimal ? 2 : 1);
  uint32_t code = 0;
  const auto [end, error] =
      std::from_chars(name.data(), name.data() + name.size(), code, hexadecimal ? 16 : 10);
  if (error != std::errc{} || end != name.data() + name.size() || code > 0x10FFFF) return false;
  append_utf8(code, text);
  return true;
}

std::string unescape(std::string_view escaped) {
  std::string text;
  for (size_t at = 0; at < escaped.size(); ++at) {
    const size_t end = escaped[at] == '&' ? escaped.find(';', at) : std::string_view::npos;
    if (end != std::string_view::npos && append_entity(escaped.substr(at + 1, end - at - 1), text))
      at = end;
    else
      text += escaped[at];
  }
  return text;
}

}  // namespace

std::vector<std::string_view> xml_elements(std::string_view xml, std::string_view name) {
  std::vector<std::string_view> found;
  const std::string close = "</" + std::string(name) + ">", open = "<" + std::string(name);
  for (size_t at = xml.find(open); at != std::string_view::npos; at = xml.find(open, at + 1)) {
    const size_t after = at + open.size();
    // "<Key" is also the beginning of "<KeyCount>".
    if (after >= xml.size() || (xml[after] != '>' && xml[after] != ' ' && xml[after] != '/'))
      continue;
    const size_t begin = xml.find('>', after);
    if (begin == std::string_view::npos) break;
    if (xml[begin - 1] == '/') {
      found.emplace_back();
      continue;
    }
    const size_t end = xml.find(close, begin);
    if (end == std::string_view::npos) break;
    found.push_back(xml.substr(begin + 1, end - begin - 1));
    at = end;
  }
  return found;
}

std::string xml_text(std::string_view xml, std::string_view name) {
  const auto found = xml_elements(xml, name);
  return found.empty() ? "" : unescape(found.front());
}

std::string escape_xml(std::string_view text) {
  std::string escaped;
  for (const char letter : text) {
    std::string_view replacement;
    for (const auto& [name, plain] : kNames)
      if (letter == plain) replacement = name;
    if (replacement.empty())
      escaped += letter;
    else
      escaped.append("&").append(replacement).append(";");
  }
  return escaped;
}

}  // namespace renkei::data
