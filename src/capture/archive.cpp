#include "capture/archive.h"

#include <fmt/format.h>

#include <algorithm>

namespace renkei::capture {

Archive::Archive(std::shared_ptr<const data::ByteFile> file, const std::string& hint)
    : file_(std::move(file)) {
  if (file_->size() < 4 || file_->read(0, 4) != "PK\x03\x04")
    throw Error(ErrorCode::data, fmt::format("{} is not a file that PyTorch wrote", name()), hint);
  std::vector<data::ZipMember> members = data::read_zip_directory(*file_);
  find_root(members, hint);
  for (data::ZipMember& member : members) {
    std::string path = member.name.substr(root_.size() + 1);
    if (!members_.emplace(std::move(path), std::move(member)).second)
      throw Error(ErrorCode::data, fmt::format("{} has a member twice", name()),
                  "the file is damaged; write it again");
  }
  check_byte_order();
}

void Archive::find_root(const std::vector<data::ZipMember>& members, const std::string& hint) {
  const size_t slash = members.empty() ? std::string::npos : members[0].name.find('/');
  if (slash == std::string::npos)
    throw Error(ErrorCode::data, fmt::format("{} is not an archive that PyTorch wrote", name()),
                hint);
  root_ = members[0].name.substr(0, slash);
  for (const data::ZipMember& member : members)
    if (!member.name.starts_with(root_ + "/"))
      throw Error(ErrorCode::data,
                  fmt::format("{} has members outside of the folder {}/", name(), root_), hint);
}

void Archive::check_byte_order() const {
  if (has("byteorder") && read("byteorder", 64) != "little")
    throw Error(ErrorCode::data,
                fmt::format("{} was written on a machine with another byte order", name()),
                "write it on a little-endian machine, such as x86 or Arm");
}

const data::ZipMember* Archive::find(std::string_view path) const {
  const auto found = members_.find(std::string(path));
  if (found == members_.end()) return nullptr;
  if (found->second.deflated)
    throw Error(ErrorCode::data, fmt::format("{}: '{}' is compressed", name(), path),
                "PyTorch stores it as it is: write the file again, and do not pack it anew");
  return &found->second;
}

std::vector<std::string> Archive::list(std::string_view prefix) const {
  std::vector<std::string> paths;
  for (const auto& [path, member] : members_)
    if (path.starts_with(prefix)) paths.push_back(path);
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string Archive::read(std::string_view path, int64_t most_bytes) const {
  const data::ZipMember* member = find(path);
  if (!member)
    throw Error(ErrorCode::data, fmt::format("{} lacks '{}'", name(), path),
                "the file is incomplete; write it again");
  if (member->size > most_bytes)
    throw Error(
        ErrorCode::data,
        fmt::format("{}: '{}' has {} bytes, more than {}", name(), path, member->size, most_bytes),
        "the file is damaged; write it again");
  return file_->read(member->offset, member->size);
}

}  // namespace renkei::capture
