// A state dict as torch.save writes it: a zip file with a pickle of the dictionary, in which each
// tensor names a member that holds its elements. The pickle has only the calls that torch.load
// allows with weights_only=True.
#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "capture/archive_writer.h"
#include "capture/state_dict.h"
#include "capture/storage_names.h"

namespace renkei::capture {
namespace {

template <typename Number>
std::string bytes_of_number(Number number) {
  return {reinterpret_cast<const char*>(&number), sizeof(number)};
}

std::string text(std::string_view words) {
  return "X" + bytes_of_number(static_cast<uint32_t>(words.size())) + std::string(words);
}

std::string integer(int64_t number) {
  if (number < (int64_t{1} << 31)) return "J" + bytes_of_number(static_cast<int32_t>(number));
  return "\x8a\x08" + bytes_of_number(number);
}

std::string tuple(const std::vector<int64_t>& numbers) {
  std::string items;
  for (const int64_t number : numbers) items += integer(number);
  return "(" + items + "t";
}

std::string global(std::string_view module, std::string_view name) {
  return fmt::format("c{}\n{}\n", module, name);
}

std::string tensor_call(const std::string& name, const StoredTensor& tensor, size_t member) {
  const std::string_view storage = storage_name(tensor.dtype);
  if (storage.empty())
    throw Error(ErrorCode::data,
                fmt::format("the tensor '{}' is of the type {}, which state dicts can't hold", name,
                            program::name_of(tensor.dtype)),
                "leave it out, or convert it");
  const std::string place = "(" + text("storage") +
                            global("torch", fmt::format("{}Storage", storage)) +
                            text(std::to_string(member)) + text("cpu") +
                            integer(tensor.bytes() / program::bytes_of(tensor.dtype)) + "tQ";
  const std::string no_hooks = global("collections", "OrderedDict") + ")R";
  return global("torch._utils", "_rebuild_tensor_v2") + "(" + place + integer(0) +
         tuple(tensor.sizes) + tuple(row_major_strides(tensor.sizes)) + "\x89" + no_hooks + "tR";
}

}  // namespace

void write_state_dict(const std::string& path, const NamedTensors& tensors) {
  std::string pickle = "\x80\x02}(";
  size_t member = 0;
  for (const auto& [name, tensor] : tensors) {
    require_values(name, tensor);
    pickle += text(name) + tensor_call(name, tensor, member++);
  }
  pickle += "u.";
  ArchiveWriter archive(path, std::filesystem::path(path).stem().string());
  archive.add("data.pkl", pickle);
  archive.add("byteorder", "little");
  member = 0;
  for (const auto& [name, tensor] : tensors)
    archive.add(fmt::format("data/{}", member++), tensor.bytes(), tensor.read);
  archive.add("version", "3\n");
  archive.finish();
}

}  // namespace renkei::capture
