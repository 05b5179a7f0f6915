#include "model/safe_to_cut.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace renkei::model {
namespace {

using torch::jit::Node;
using torch::jit::Value;
using Parameters = std::unordered_map<const Value*, int>;

bool changes_first_input(const Node* node) {
  const auto* schema = node->maybeSchema();
  if (!schema || schema->arguments().empty() || node->inputs().empty()) return false;
  const auto* alias = schema->arguments()[0].alias_info();
  return alias && alias->isWrite();
}

// The input whose memory an output may share; empty: it has memory of its own.
std::optional<size_t> shared_input(const Node* node) {
  const auto* schema = node->maybeSchema();
  if (!schema || schema->returns().empty() || node->inputs().empty()) return {};
  if (schema->returns()[0].alias_info())
    for (size_t i = 0; i < schema->arguments().size(); ++i)
      if (schema->arguments()[i].alias_info()) return i;
  // They give a view where they can, and say nothing about it.
  static const std::set<std::string_view> perhaps{
      "aten::reshape",       "aten::flatten",   "aten::contiguous", "aten::to",
      "aten::type_as",       "aten::expand_as", "aten::dropout",    "aten::feature_dropout",
      "aten::alpha_dropout", "aten::chunk",     "aten::split",      "aten::view_as",
      "aten::reshape_as",    "aten::movedim",   "aten::swapaxes",   "aten::adaptive_avg_pool2d"};
  if (perhaps.contains(node->kind().toQualString())) return 0;
  return {};
}

class Memory {
 public:
  explicit Memory(torch::jit::Graph& code) {
    int position = 0;
    for (Node* node : code.nodes()) {
      position_[node] = position++;
      nodes_.push_back(node);
      const auto input = shared_input(node);
      for (Value* output : node->outputs()) {
        Value* root = output;
        if (input && *input < node->inputs().size()) root = root_of(node->input(*input));
        if (node->kind() == torch::jit::prim::ListUnpack) root = root_of(node->input());
        roots_[output] = root;
        members_[root].push_back(output);
      }
    }
    end_ = position;
  }

  Value* root_of(Value* value) const {
    const auto found = roots_.find(value);
    return found == roots_.end() ? value : found->second;
  }
  int position(const Node* node) const {
    const auto found = position_.find(node);
    return found == position_.end() ? end_ : found->second;  // the end: an output of the graph
  }
  Node* node(int position) const { return nodes_[static_cast<size_t>(position)]; }
  int end() const { return end_; }

  // The last use after `node` of memory that it changes, under another name than its own result;
  // empty: there is none.
  std::optional<int> last_use_after(const Node* node) const {
    Value* root = root_of(node->input(0));
    std::optional<int> last;
    const auto look_at = [&](const Value* value) {
      if (value == node->output() ||
          (value->node() && position(value->node()) > position(node) && value != root))
        return;
      for (const auto& use : value->uses())
        if (position(use.user) > position(node))
          last = std::max(last.value_or(0), position(use.user));
    };
    look_at(root);
    if (const auto found = members_.find(root); found != members_.end())
      for (const Value* member : found->second) look_at(member);
    return last;
  }

 private:
  std::map<const Value*, Value*> roots_;
  std::map<const Value*, std::vector<Value*>> members_;
  std::map<const Node*, int> position_;
  std::vector<Node*> nodes_;
  int end_ = 0;
};

// The operation that makes a new tensor, in the place of `node`; false if there is none.
bool replace(torch::jit::Graph& code, Node* node) {
  std::string name = node->kind().toQualString();
  if (!name.ends_with('_') || name.ends_with("__") || node->outputs().size() != 1) return false;
  name.pop_back();
  Node* made = code.create(c10::Symbol::fromQualString(name), node->inputs(), 1);
  made->insertBefore(node);
  if (!made->maybeSchema()) {
    made->destroy();
    return false;
  }
  made->copyAttributes(*node);
  made->output()->setType(node->output()->type());
  node->output()->replaceAllUsesWith(made->output());
  node->destroy();
  return true;
}

}  // namespace

bool writes_to_parameter(const Node* node, const Parameters& parameters) {
  return changes_first_input(node) && parameters.contains(node->input(0));
}

std::vector<NodeRange> make_safe_to_cut(torch::jit::Graph& code, const Parameters& parameters) {
  std::vector<std::pair<int, int>> spans;  // of positions, both ends in
  std::vector<Node*> replaceable;
  const Memory memory(code);
  for (Node* node : code.nodes()) {
    if (!changes_first_input(node)) continue;
    const Value* root = memory.root_of(node->input(0));
    if (parameters.contains(root)) continue;
    const auto last = memory.last_use_after(node);
    const int begin = std::min(memory.position(root->node()), memory.position(node));
    if (last) {
      spans.emplace_back(begin, std::min(*last, memory.end() - 1));
    } else {
      replaceable.push_back(node);
    }
  }
  std::ranges::sort(spans);
  std::vector<std::pair<int, int>> joined;
  for (const auto& span : spans) {
    if (!joined.empty() && span.first <= joined.back().second)
      joined.back().second = std::max(joined.back().second, span.second);
    else
      joined.push_back(span);
  }
  std::vector<NodeRange> ranges;
  for (const auto& [begin, end] : joined) {
    ranges.emplace_back();
    for (int i = begin; i <= end; ++i)
      if (memory.node(i)->kind() != torch::jit::prim::Constant)
        ranges.back().push_back(memory.node(i));
  }
  const auto inside = [&](Node* node) {
    return std::ranges::any_of(ranges,
                               [&](const NodeRange& r) { return std::ranges::count(r, node) > 0; });
  };
  for (Node* node : replaceable) {
    if (inside(node)) continue;
    Node* producer = memory.root_of(node->input(0))->node();
    const int begin = memory.position(producer), end = memory.position(node);
    if (replace(code, node)) continue;
    // Nothing else to do but to keep it with what it changes.
    ranges.emplace_back();
    for (int i = std::min(begin, end); i <= end; ++i)
      if (memory.node(i)->kind() != torch::jit::prim::Constant && !inside(memory.node(i)))
        ranges.back().push_back(memory.node(i));
  }
  return ranges;
}

}  // namespace renkei::model
