#include "base/error.h"

#include "base/secrets.h"

namespace renkei {

std::string_view name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::check:
      return "check";
    case ErrorCode::usage:
      return "usage";
    case ErrorCode::data:
      return "data";
    case ErrorCode::communication:
      return "communication";
    case ErrorCode::memory:
      return "memory";
    case ErrorCode::bug:
      return "bug";
  }
  return "bug";
}

std::string format_for_people(const Error& error) {
  std::string text = fmt::format("error: {}", error.message);
  if (!error.hint.empty()) text += fmt::format("\n  hint: {}", error.hint);
  return without_secrets(text);
}

}  // namespace renkei
