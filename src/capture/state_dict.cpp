#include "capture/state_dict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "capture/archive.h"
#include "capture/pickle.h"
#include "capture/storage_names.h"
#include "data/storage/storage.h"

namespace renkei::capture {
namespace {

using program::DType;
using Kind = PickleValue::Kind;

constexpr int64_t kLargestPickle = 64 << 20;
constexpr int kDeepest = 8;  // calls in calls: a parameter of a tensor of a type
constexpr std::string_view kHint = "save only model.state_dict(), with torch.save or safetensors";

constexpr std::array<std::string_view, 2> kHarmless{"torch.Size", "torch.device"};

class StateDictReader {
 public:
  explicit StateDictReader(const Archive& archive) : archive_(archive) {}

  NamedTensors read() {
    const std::string bytes = archive_.read("data.pkl", kLargestPickle);
    const Pickle pickle = parse_pickle(bytes, archive_.name());
    for (const PickleValue& value : pickle.values) check_call(value);
    return tensors_of(*find_state_dict(*pickle.root));
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    throw Error(ErrorCode::data, fmt::format("{} {}", archive_.name(), what), std::string(kHint));
  }

  // All calls in the file must be known, not only those that a tensor needs.
  void check_call(const PickleValue& value) const {
    if (value.kind != Kind::call) return;
    const PickleValue& function = *value.items[0];
    if (function.kind != Kind::global) refuse("calls what it made itself, which is code");
    const std::string& name = function.text;
    const bool known = is_dictionary_call(value) || is_tensor_call(name) ||
                       std::find(kHarmless.begin(), kHarmless.end(), name) != kHarmless.end();
    if (!known) refuse(fmt::format("uses {}, which is code", name));
  }

  static bool is_dictionary_call(const PickleValue& value) {
    return value.kind == Kind::call && value.items[0]->text == "collections.OrderedDict";
  }

  static bool is_tensor_call(std::string_view name) {
    return name == "torch._utils._rebuild_tensor_v2" || name == "torch._utils._rebuild_tensor_v3" ||
           name == "torch._utils._rebuild_parameter" ||
           name == "torch._utils._rebuild_parameter_with_state" ||
           name == "torch._tensor._rebuild_from_type_v2";
  }

  // Key, value, key, value …, of a dictionary or an OrderedDict.
  static std::optional<std::span<const PickleValue* const>> entries(const PickleValue& value) {
    const std::span<const PickleValue* const> items(value.items);
    if (value.kind == Kind::dictionary) return items;
    if (is_dictionary_call(value) && value.items[1]->items.empty()) return items.subspan(2);
    return {};
  }

  static bool is_tensor(const PickleValue& value) {
    return value.kind == Kind::call && is_tensor_call(value.items[0]->text);
  }

  static bool is_state_dict(const PickleValue& value) {
    const auto all = entries(value);
    if (!all || all->empty()) return false;
    for (size_t i = 0; i + 1 < all->size(); i += 2)
      if ((*all)[i]->kind != Kind::text || !is_tensor(*(*all)[i + 1])) return false;
    return true;
  }

  const PickleValue* find_state_dict(const PickleValue& root) const {
    const auto all = entries(root);
    if (!all)
      refuse(is_tensor(root) ? "is one tensor, not a state dict"
                             : "is not a dictionary of tensors");
    if (is_state_dict(root)) return &root;
    std::vector<std::string> names;
    const PickleValue* found = nullptr;
    for (size_t i = 0; i + 1 < all->size(); i += 2) {
      if ((*all)[i]->kind != Kind::text || !is_state_dict(*(*all)[i + 1])) continue;
      names.push_back((*all)[i]->text);
      found = (*all)[i + 1];
    }
    if (names.size() > 1)
      refuse(
          fmt::format("holds several state dicts: {}",
                      fmt::join(std::span(names).first(std::min<size_t>(names.size(), 8)), ", ")));
    if (!found) refuse("holds no dictionary of tensors");
    return found;
  }

  NamedTensors tensors_of(const PickleValue& state_dict) {
    NamedTensors tensors;
    const auto all = *entries(state_dict);
    for (size_t i = 0; i + 1 < all.size(); i += 2)
      tensors.insert_or_assign(all[i]->text, tensor_of(*all[i + 1], all[i]->text, 0));
    return tensors;
  }

  [[noreturn]] void refuse_tensor(std::string_view name, std::string_view what) const {
    refuse(fmt::format("has the tensor '{}', {}", name, what));
  }

  const PickleValue& argument(const PickleValue& arguments, size_t index, Kind kind,
                              std::string_view name) const {
    if (arguments.kind != Kind::list || index >= arguments.items.size() ||
        arguments.items[index]->kind != kind)
      refuse_tensor(name, "which is not put together as PyTorch does it");
    return *arguments.items[index];
  }

  StoredTensor tensor_of(const PickleValue& value, const std::string& name, int depth) const {
    if (depth > kDeepest || !is_tensor(value))
      refuse_tensor(name, "which is not put together as PyTorch does it");
    return rebuild(value.items[0]->text, *value.items[1], name, depth);
  }

  StoredTensor rebuild(const std::string& function, const PickleValue& arguments,
                       const std::string& name, int depth) const {
    if (function.starts_with("torch._utils._rebuild_parameter"))
      return tensor_of(argument(arguments, 0, Kind::call, name), name, depth + 1);
    if (function == "torch._tensor._rebuild_from_type_v2") {
      const std::string& inner = argument(arguments, 0, Kind::global, name).text;
      const std::string& type = argument(arguments, 1, Kind::global, name).text;
      if (type != "torch.Tensor" && type != "torch._tensor.Tensor" &&
          type != "torch.nn.parameter.Parameter" && type != "torch.nn.parameter.Buffer")
        refuse(fmt::format("uses {}, which is code", type));
      if (!is_tensor_call(inner) || depth > kDeepest)
        refuse(fmt::format("uses {}, which is code", inner));
      return rebuild(inner, argument(arguments, 2, Kind::list, name), name, depth + 1);
    }
    return strided(function, arguments, name);
  }

  // (storage, offset, sizes, strides, requires_grad, hooks), and for version 3 the type.
  StoredTensor strided(const std::string& function, const PickleValue& arguments,
                       const std::string& name) const {
    const PickleValue& storage = *argument(arguments, 0, Kind::persistent, name).items[0];
    if (argument_text(storage, 0, name) != "storage")
      refuse_tensor(name, "which is not put together as PyTorch does it");
    const DType dtype =
        function.ends_with("_v3")
            ? dtype_from_torch(argument(arguments, 6, Kind::global, name).text, name)
            : dtype_of_storage(argument(storage, 1, Kind::global, name).text, name);
    const std::string path = fmt::format("data/{}", argument_text(storage, 2, name));
    const data::ZipMember* member = archive_.find(path);
    if (!member) refuse_tensor(name, fmt::format("whose bytes ('{}') are not there", path));
    return stored_tensor(dtype, integers(argument(arguments, 2, Kind::list, name), name),
                         {.file = archive_.file(),
                          .begin = member->offset,
                          .size = member->size,
                          .first = argument(arguments, 1, Kind::integer, name).integer,
                          .strides = integers(argument(arguments, 3, Kind::list, name), name)},
                         fmt::format("{}: the tensor '{}'", archive_.name(), name));
  }

  const std::string& argument_text(const PickleValue& list, size_t index,
                                   std::string_view name) const {
    return argument(list, index, Kind::text, name).text;
  }

  std::vector<int64_t> integers(const PickleValue& list, std::string_view name) const {
    std::vector<int64_t> numbers;
    for (size_t i = 0; i < list.items.size(); ++i)
      numbers.push_back(argument(list, i, Kind::integer, name).integer);
    return numbers;
  }

  DType dtype_of_storage(const std::string& storage, std::string_view name) const {
    for (const auto& [type, dtype] : kStorages)
      if (storage == fmt::format("torch.{}Storage", type)) return dtype;
    refuse_tensor(name, fmt::format("whose type ({}) Renkei does not compute with", storage));
  }

  DType dtype_from_torch(const std::string& type, std::string_view name) const {
    constexpr std::array<StorageName, 12> types{{{"torch.float32", DType::f32},
                                                 {"torch.float64", DType::f64},
                                                 {"torch.float16", DType::f16},
                                                 {"torch.bfloat16", DType::bf16},
                                                 {"torch.int64", DType::i64},
                                                 {"torch.int32", DType::i32},
                                                 {"torch.int16", DType::i16},
                                                 {"torch.int8", DType::i8},
                                                 {"torch.uint8", DType::u8},
                                                 {"torch.bool", DType::boolean},
                                                 {"torch.complex64", DType::c64},
                                                 {"torch.complex128", DType::c128}}};
    for (const auto& [known, dtype] : types)
      if (type == known) return dtype;
    refuse_tensor(name, fmt::format("whose type ({}) Renkei does not compute with", type));
  }

  const Archive& archive_;
};

void refuse_old_files(const data::ByteFile& file) {
  // What torch.save wrote before version 1.6: pickles one after another, the first a magic number.
  const std::string begin = file.read(0, std::min<int64_t>(file.size(), 16));
  if (begin.find("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19") != std::string::npos)
    throw Error(
        ErrorCode::data,
        fmt::format("{} is in the format that torch.save had before PyTorch 1.6", file.name()),
        "load it with torch.load and save it again with torch.save");
}

}  // namespace

NamedTensors read_state_dict(std::shared_ptr<const data::ByteFile> file) {
  refuse_old_files(*file);
  const Archive archive(std::move(file), std::string(kHint));
  if (archive.has("constants.pkl") || !archive.list("code/").empty())
    throw Error(ErrorCode::data,
                fmt::format("{} is a TorchScript file, which PyTorch has given up", archive.name()),
                "make a .pt2 file of the model: renkei model export, or torch.export.save");
  if (archive.has("archive_format"))
    throw Error(ErrorCode::data, fmt::format("{} is a .pt2 file, not a state dict", archive.name()),
                "give it as the model: --model FILE.pt2");
  return StateDictReader(archive).read();
}

NamedTensors read_state_dict(const std::string& path) {
  return read_state_dict(data::open_storage(path)->open(path));
}

}  // namespace renkei::capture
