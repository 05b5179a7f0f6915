#include "base/secrets.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace renkei {
namespace {

constexpr std::string_view kHidden = "***";
constexpr std::array<std::string_view, 7> kNames{"signature",  "token",   "password",  "secret",
                                                 "secret_key", "api_key", "credential"};

bool ends_word(char c) {
  return std::isspace(static_cast<unsigned char>(c)) || c == '\'' || c == '"' || c == '&' ||
         c == ';' || c == ',';
}

// "scheme://user:password@": the user stays.
std::string hide_passwords(std::string_view text) {
  std::string shown;
  for (size_t at = 0; at < text.size();) {
    const size_t address = text.find("://", at);
    if (address == std::string_view::npos) return shown.append(text.substr(at));
    const size_t begin = address + 3;
    const size_t end = std::min(text.find_first_of("/ '\"\n", begin), text.size());
    const std::string_view authority = text.substr(begin, end - begin);
    const size_t colon = authority.find(':'), sign = authority.rfind('@');
    shown.append(text.substr(at, begin - at));
    if (sign != std::string_view::npos && colon < sign)
      shown.append(authority.substr(0, colon + 1)).append(kHidden).append(authority.substr(sign));
    else
      shown.append(authority);
    at = end;
  }
  return shown;
}

// "name=value", the name as a whole or behind a dash: X-Amz-Signature.
std::string hide_parameters(std::string text) {
  for (size_t equals = text.find('='); equals != std::string::npos;
       equals = text.find('=', equals + 1)) {
    size_t first = equals;
    while (first > 0 &&
           (std::isalnum(static_cast<unsigned char>(text[first - 1])) || text[first - 1] == '_'))
      --first;
    std::string name = text.substr(first, equals - first);
    std::ranges::transform(name, name.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (std::ranges::find(kNames, name) == kNames.end()) continue;
    size_t end = equals + 1;
    while (end < text.size() && !ends_word(text[end])) ++end;
    if (end > equals + 1) text.replace(equals + 1, end - equals - 1, kHidden);
  }
  return text;
}

}  // namespace

std::string without_secrets(std::string_view text) {
  return hide_parameters(hide_passwords(text));
}

}  // namespace renkei
