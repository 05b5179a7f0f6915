// TensorBoard's event file is a sequence of TFRecords,
//
//   uint64 length · uint32 masked_crc(length) · bytes · uint32 masked_crc(bytes)
//
// all little endian. The bytes of a record are a protobuf message. Of its schema we need five
// fields, which is too little to depend on a compiler for it:
//
//   Event   { 1: double wall_time, 2: int64 step, 3: string file_version, 5: Summary }
//   Summary { 1: repeated Value }    Value { 1: string tag, 2: float simple_value }
//
// A protobuf field is a varint key (number << 3 | wire type) and its content: wire type 0 is a
// varint, 1 has eight bytes, 2 a varint length and as many bytes, 5 four bytes. A field that has
// the value zero is left out.
#include "report/tensorboard.h"

#include <unistd.h>

#include <array>
#include <bit>
#include <cstring>
#include <optional>

#include "base/checksum.h"
#include "base/clock.h"
#include "base/error.h"

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie here");

namespace renkei::report {
namespace {

constexpr size_t kHeaderBytes = 12;
constexpr size_t kFooterBytes = 4;

template <typename Number>
std::string bytes_of(Number number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

template <typename Number>
Number number_at(std::string_view bytes) {
  Number number;
  std::memcpy(&number, bytes.data(), sizeof number);
  return number;
}

// TFRecord masks its checksums, because a CRC of data that contains CRCs is a weak one.
uint32_t masked_crc(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xA282EAD8;
}

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string string_field(int number, std::string_view content) {
  std::string bytes = varint(static_cast<uint64_t>(number) << 3 | 2) + varint(content.size());
  return bytes.append(content);
}

// `rest` is what follows the two fields that every event has.
std::string event_record(int64_t step, std::string_view rest) {
  std::string event = '\x09' + bytes_of(wall_seconds());
  if (step != 0) event += '\x10' + varint(static_cast<uint64_t>(step));
  event += rest;
  const std::string length = bytes_of(uint64_t{event.size()});
  return length + bytes_of(masked_crc(length)) + event + bytes_of(masked_crc(event));
}

std::filesystem::path new_file_in(const std::filesystem::path& directory) {
  make_directories(directory);
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  const std::string name = fmt::format("events.out.tfevents.{}.{}.{}",
                                       static_cast<int64_t>(wall_seconds()), host.data(), getpid());
  std::filesystem::path path = directory / name;
  // Only a second writer of this process in this second can meet the name again.
  for (int copy = 1; std::filesystem::exists(path); ++copy)
    path = directory / fmt::format("{}.{}", name, copy);
  return path;
}

struct Malformed {};

std::string_view take(std::string_view& bytes, uint64_t count) {
  if (count > bytes.size()) throw Malformed{};
  const std::string_view taken = bytes.substr(0, count);
  bytes.remove_prefix(count);
  return taken;
}

uint64_t take_varint(std::string_view& bytes) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = static_cast<uint8_t>(take(bytes, 1).front());
    value |= uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return value;
  }
  throw Malformed{};
}

struct Field {
  uint64_t key;                   // number << 3 | wire type
  uint64_t varint = 0;            // of wire type 0
  std::string_view content = {};  // of the others
};

Field take_field(std::string_view& bytes) {
  Field field{.key = take_varint(bytes)};
  switch (field.key & 7) {
    case 0:
      field.varint = take_varint(bytes);
      return field;
    case 1:
      field.content = take(bytes, 8);
      return field;
    case 2:
      field.content = take(bytes, take_varint(bytes));
      return field;
    case 5:
      field.content = take(bytes, 4);
      return field;
    default:
      throw Malformed{};
  }
}

// Unknown fields are passed over, as everywhere in protobuf.
void parse_value(std::string_view bytes, Event& event) {
  while (!bytes.empty()) {
    const Field field = take_field(bytes);
    if (field.key == (1 << 3 | 2)) event.tag = field.content;
    if (field.key == (2 << 3 | 5)) event.value = number_at<float>(field.content);
  }
}

void parse_summary(std::string_view bytes, Event& event) {
  while (!bytes.empty()) {
    const Field field = take_field(bytes);
    if (field.key == (1 << 3 | 2)) parse_value(field.content, event);
  }
}

Event parse_event(std::string_view bytes) {
  Event event;
  while (!bytes.empty()) {
    const Field field = take_field(bytes);
    if (field.key == (1 << 3 | 1)) event.wall_time = number_at<double>(field.content);
    if (field.key == (2 << 3 | 0)) event.step = static_cast<int64_t>(field.varint);
    if (field.key == (3 << 3 | 2)) event.file_version = field.content;
    if (field.key == (5 << 3 | 2)) parse_summary(field.content, event);
  }
  return event;
}

void check_crc(std::string_view bytes, std::string_view stored) {
  if (masked_crc(bytes) != number_at<uint32_t>(stored)) throw Malformed{};
}

// The bytes of the next record, or nothing when the rest is torn.
std::optional<std::string_view> take_record(std::string_view& rest) {
  if (rest.size() < kHeaderBytes) return std::nullopt;
  check_crc(rest.substr(0, 8), rest.substr(8, 4));
  // The length is now known to be what was written, so a record beyond the end is a torn one.
  const auto length = number_at<uint64_t>(rest);
  if (rest.size() - kHeaderBytes < kFooterBytes ||
      rest.size() - kHeaderBytes - kFooterBytes < length)
    return std::nullopt;
  take(rest, kHeaderBytes);
  const std::string_view bytes = take(rest, length);
  check_crc(bytes, take(rest, kFooterBytes));
  return bytes;
}

}  // namespace

TensorBoardWriter::TensorBoardWriter(const std::filesystem::path& directory)
    : file_(new_file_in(directory)) {
  file_.append(event_record(0, string_field(3, "brain.Event:2")));
}

void TensorBoardWriter::scalar(std::string_view tag, int64_t step, double value) {
  const std::string entry = string_field(1, tag) + '\x15' + bytes_of(static_cast<float>(value));
  file_.append(event_record(step, string_field(5, string_field(1, entry))));
}

void TensorBoardWriter::flush() {
  file_.sync();
}

void cut_events(const std::filesystem::path& path, int64_t step) {
  const std::string content = read_file(path);
  std::string_view rest = content;
  std::string kept;
  try {
    while (true) {
      const std::string_view before = rest;
      const auto record = take_record(rest);
      if (!record) break;
      const Event event = parse_event(*record);
      if (event.tag.empty() || event.step < step)
        kept += before.substr(0, before.size() - rest.size());
    }
  } catch (const Malformed&) {
    // What stands before the damage is kept.
  }
  write_file_atomically(path, kept);
}

std::vector<Event> read_events(const std::filesystem::path& path) {
  const std::string content = read_file(path);
  std::string_view rest = content;
  std::vector<Event> events;
  size_t place = 0;
  try {
    while (const auto record = take_record(rest)) {
      events.push_back(parse_event(*record));
      place = content.size() - rest.size();
    }
  } catch (const Malformed&) {
    throw Error(
        ErrorCode::data,
        fmt::format("{} is damaged: the record at byte {} does not match its checksum or is "
                    "not a TensorBoard event",
                    path.string(), place),
        "what stands before that byte can still be used");
  }
  return events;
}

}  // namespace renkei::report
