#include "data/source/dali_index.h"

#include <algorithm>
#include <charconv>

#include "data/source/tar.h"

namespace renkei::data {
namespace {

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    const size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) return words;
    line.remove_prefix(begin);
    words.push_back(line.substr(0, line.find_first_of(" \t\r")));
    line.remove_prefix(words.back().size());
  }
}

class Parser {
 public:
  Parser(std::string_view text, std::string_view file, int64_t tar_bytes)
      : text_(text), file_(file), tar_bytes_(tar_bytes) {}

  std::vector<TarSample> run() {
    const auto first = split(next_line());
    if (first.size() != 2 || (first[0] != "v1.1" && first[0] != "v1.2"))
      throw wrong("does not start with 'v1.2' and the number of samples");
    const int64_t count = number(first[1]);
    const size_t words = first[0] == "v1.1" ? 3 : 4;
    // Each sample takes a line of at least six characters: a bound before memory is asked for.
    if (count > static_cast<int64_t>(text_.size()) / 6 + 1)
      throw wrong(fmt::format("claims {} samples, more than it has lines", count));
    std::vector<TarSample> samples;
    samples.reserve(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) samples.push_back(sample(split(next_line()), words));
    return samples;
  }

 private:
  std::string_view next_line() {
    ++line_;
    if (at_ >= text_.size()) throw wrong("ends too early");
    const size_t end = std::min(text_.find('\n', at_), text_.size());
    const std::string_view line = text_.substr(at_, end - at_);
    at_ = end + 1;
    return line;
  }

  TarSample sample(const std::vector<std::string_view>& fields, size_t words) const {
    if (fields.empty() || fields.size() % words != 0)
      throw wrong(fmt::format("has {} fields where groups of {} belong", fields.size(), words));
    TarSample components;
    for (size_t i = 0; i < fields.size(); i += words) {
      TarComponent part{.extension = std::string(fields[i]),
                        .offset = number(fields[i + 1]),
                        .size = number(fields[i + 2])};
      if (words == 4) part.name = std::string(fields[i + 3]);
      if (part.offset % 512 != 0 || part.offset > tar_bytes_ ||
          part.size > tar_bytes_ - part.offset)
        throw wrong(fmt::format("puts {} bytes at offset {} of an archive of {} bytes", part.size,
                                part.offset, tar_bytes_));
      components.push_back(std::move(part));
    }
    return components;
  }

  int64_t number(std::string_view word) const {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(word.begin(), word.end(), value);
    if (error != std::errc{} || end != word.end() || value < 0)
      throw wrong(fmt::format("has '{}' where a number belongs", word.substr(0, 40)));
    return value;
  }

  Error wrong(std::string_view what) const {
    return Error(ErrorCode::data, fmt::format("{} line {}: the index {}", file_, line_, what),
                 "remove the index (the archive is then scanned), or make it anew");
  }

  std::string_view text_;
  std::string_view file_;
  int64_t tar_bytes_;
  size_t at_ = 0;
  int line_ = 0;
};

}  // namespace

std::vector<TarSample> parse_dali_index(std::string_view text, std::string_view file,
                                        int64_t tar_bytes) {
  return Parser(text, file, tar_bytes).run();
}

std::string format_dali_index(const std::vector<TarSample>& samples) {
  std::string text = fmt::format("v1.2 {}\n", samples.size());
  for (const TarSample& sample : samples) {
    for (size_t i = 0; i < sample.size(); ++i) {
      const TarComponent& part = sample[i];
      if (part.name.find_first_of(" \t\r\n") != std::string::npos)
        throw Error(ErrorCode::data,
                    fmt::format("the member '{}' has a blank in its name, which DALI's index "
                                "cannot hold",
                                part.name),
                    "rename it");
      text += fmt::format("{}{} {} {} {}", i ? " " : "", part.extension, part.offset, part.size,
                          part.name);
    }
    text += '\n';
  }
  return text;
}

std::vector<TarSample> scan_tar(const ByteFile& file) {
  std::vector<TarSample> samples;
  std::string key;
  TarReader reader(file);
  while (const auto member = reader.next()) {
    const auto name = split_tar_name(member->name);
    if (!name) continue;
    if (samples.empty() || key != name->key) {
      key = std::string(name->key);
      samples.emplace_back();
    }
    samples.back().push_back({.extension = std::string(name->extension),
                              .offset = member->offset,
                              .size = member->size,
                              .name = member->name});
  }
  return samples;
}

}  // namespace renkei::data
