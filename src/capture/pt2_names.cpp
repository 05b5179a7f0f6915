#include "capture/pt2_names.h"

#include <fmt/format.h>

#include <cctype>

#include "base/error.h"

namespace renkei::capture {
namespace {

constexpr size_t kMost = 100'000;
constexpr size_t kLongest = 1000;

// The keys of a dictionary are written as a JSON list inside of a text.
std::vector<std::string> keys_of(const json& spec, size_t count) {
  std::vector<std::string> keys;
  const json* context = find_field(spec, "context");
  if (!context || !context->is_string()) return {};
  const json list = json::parse(context->get_ref<const std::string&>(), nullptr, false);
  if (!list.is_array() || list.size() != count) return {};
  for (const json& key : list) {
    if (!key.is_string()) return {};
    keys.push_back(key.get<std::string>());
  }
  return keys;
}

void collect_names(const json& spec, const std::string& path, std::vector<std::string>& names) {
  const json* children = find_field(spec, "children_spec");
  const bool leaf = !find_field(spec, "type");
  if (leaf || !children || !children->is_array()) {
    if (leaf && names.size() < kMost && path.size() < kLongest) names.push_back(path);
    return;
  }
  const std::vector<std::string> keys = keys_of(spec, children->size());
  for (size_t i = 0; i < children->size(); ++i) {
    const std::string key = keys.empty() ? fmt::format("{}", i) : keys[i];
    collect_names((*children)[i], path.empty() ? key : path + "." + key, names);
  }
}

}  // namespace

std::vector<std::string> output_names(const json& graph_module) {
  const json* calls = find_field(graph_module, "module_call_graph");
  if (!calls || !calls->is_array() || calls->empty()) return {};
  const json* signature = find_field((*calls)[0], "signature");
  const json* spec = signature ? find_field(*signature, "out_spec") : nullptr;
  if (!spec || !spec->is_string()) return {};
  std::vector<std::string> names;
  try {
    const json tree = parse_model_json(spec->get_ref<const std::string&>(), {"out_spec"});
    if (tree.is_array() && tree.size() == 2) collect_names(tree[1], "", names);
  } catch (const Error&) {
    return {};  // names are a courtesy
  }
  for (std::string& name : names) {
    if (name.empty())
      name = "output";
    else if (std::isdigit(static_cast<unsigned char>(name[0])))
      name = "output_" + name;
  }
  return names;
}

}  // namespace renkei::capture
