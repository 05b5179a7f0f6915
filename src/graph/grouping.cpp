#include "graph/grouping.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "graph/memory.h"
#include "graph/strong_components.h"
#include "graph/union_find.h"
#include "graph/uses.h"

namespace renkei::graph {
namespace {

using program::Program;
using program::ValueId;

class Grouper {
 public:
  Grouper(const SafeToCut& safe, const std::vector<bool>& known)
      : safe_(safe),
        program_(safe.program),
        known_(known),
        memory_(safe.program),
        active_(program_.ops.size()),
        set_of_(program_.ops.size(), -1),
        changes_state_(program_.ops.size()),
        users_(program_.values.size()),
        roles_(program_.ops.size()),
        joined_(program_.ops.size()) {}

  Grouping run() {
    look_around();
    find_active();
    for (size_t i = 0; i < program_.ops.size(); ++i) roles_[i] = role_of(i);
    find_common();
    join();
    contract_cycles();
    for (size_t i = 0; i < program_.ops.size(); ++i)
      if (is_computed(i)) groups_[joined_.find(static_cast<int>(i))].push_back(static_cast<int>(i));
    for (auto& [name, ops] : groups_) result_.groups.push_back(std::move(ops));
    return std::move(result_);
  }

 private:
  // Of an op: nobody computes it, each part for itself, it is (part of) an op of the graph, or it
  // has effects only and goes with the next one.
  enum class Role : uint8_t { known, common, compute, wait };

  bool is_computed(size_t op) const {
    return roles_[op] == Role::compute || roles_[op] == Role::wait;
  }

  void look_around() {
    for (size_t i = 0; i < program_.ops.size(); ++i) {
      for (const ValueId value : references(program_.ops[i]))
        users_[static_cast<size_t>(value)].push_back(static_cast<int>(i));
      changes_state_[i] =
          std::ranges::any_of(memory_.written_classes(static_cast<int>(i)), [&](int c) {
            return memory_.classes()[static_cast<size_t>(c)].owner == Memory::Owner::state;
          });
    }
    for (size_t set = 0; set < safe_.together.size(); ++set) {
      const auto& ops = safe_.together[set];
      const auto changes = [&](int op) { return changes_state_[static_cast<size_t>(op)]; };
      const bool any = std::ranges::any_of(ops, changes);
      for (const int op : ops) {
        set_of_[static_cast<size_t>(op)] = static_cast<int>(set);
        changes_state_[static_cast<size_t>(op)] = any;
      }
    }
  }

  // What depends on the inputs, or on a state that changes.
  void find_active() {
    for (const program::Port& input : program_.inputs) activate_users(input.value);
    for (size_t i = 0; i < program_.ops.size(); ++i)
      if (changes_state_[i] && !active_[i] && is_used_outside(i)) activate(static_cast<int>(i));
  }

  bool is_used_outside(size_t op) const {
    return std::ranges::any_of(program_.ops[op].outputs, [&](ValueId output) {
      if (output == program::kNoValue) return false;
      if (memory_.last_use(output) == static_cast<int>(program_.ops.size())) return true;
      return std::ranges::any_of(users_[static_cast<size_t>(output)], [&](int user) {
        const int set = set_of_[static_cast<size_t>(user)];
        return set < 0 || set != set_of_[op];
      });
    });
  }

  void activate(int op) {
    std::vector<int> left{op};
    while (!left.empty()) {
      const auto next = static_cast<size_t>(left.back());
      left.pop_back();
      if (active_[next] || is_known(program_.ops[next])) continue;
      active_[next] = true;
      for (const ValueId output : program_.ops[next].outputs)
        if (output != program::kNoValue)
          for (const int user : users_[static_cast<size_t>(output)]) left.push_back(user);
      if (set_of_[next] >= 0)
        for (const int other : safe_.together[static_cast<size_t>(set_of_[next])])
          left.push_back(other);
    }
  }
  void activate_users(ValueId value) {
    for (const int user : users_[static_cast<size_t>(value)]) activate(user);
  }

  bool is_known(const program::Op& op) const {
    return !op.outputs.empty() && std::ranges::all_of(op.outputs, [&](ValueId output) {
      return output != program::kNoValue && known_[static_cast<size_t>(output)];
    });
  }

  Role role_of(size_t i) const {
    const program::Op& op = program_.ops[i];
    if (is_known(op)) return Role::known;
    if (active_[i] && set_of_[i] >= 0) return Role::compute;
    if (op.outputs.empty() || (changes_state_[i] && !active_[i])) return Role::wait;
    if (!active_[i]) return Role::common;
    const bool gives_numbers = std::ranges::none_of(op.outputs, [&](ValueId output) {
      return output == program::kNoValue ||
             program_.value(output).kind == program::ValueKind::tensor;
    });
    return gives_numbers && !changes_state_[i] ? Role::common : Role::compute;
  }

  void find_common() {
    for (size_t i = 0; i < program_.ops.size(); ++i)
      if (roles_[i] == Role::common) result_.common.push_back(static_cast<int>(i));
    for (const auto& set : safe_.together) {
      std::vector<int> common;
      for (const int op : set)
        if (roles_[static_cast<size_t>(op)] == Role::common) common.push_back(op);
      if (common.size() > 1) result_.linked.push_back(std::move(common));
    }
  }

  void join() {
    for (const auto& set : safe_.together) {
      int first = -1;
      for (const int op : set) {
        if (!is_computed(static_cast<size_t>(op))) continue;
        if (first >= 0) joined_.join(first, op);
        if (first < 0) first = op;
      }
    }
    std::vector<int> waiting;
    int last = -1;
    for (size_t i = 0; i < program_.ops.size(); ++i) {
      const auto op = static_cast<int>(i);
      if (roles_[i] == Role::wait && joined_.find(op) == op) waiting.push_back(op);
      if (roles_[i] != Role::compute) continue;
      for (const int first : waiting) joined_.join(first, op);
      waiting.clear();
      last = op;
    }
    if (last < 0)
      throw Error(ErrorCode::data,
                  fmt::format("{} computes nothing from its input", program_.name));
    for (const int op : waiting) joined_.join(op, last);
  }

  // Where groups need one another they are one.
  void contract_cycles() {
    const Uses uses(program_, result_.common, result_.linked, known_);
    std::vector<std::vector<int>> needed(program_.ops.size());
    for (size_t i = 0; i < program_.ops.size(); ++i) {
      if (!is_computed(i)) continue;
      const auto op = static_cast<int>(i);
      for (const ValueId value : uses.of(std::span(&op, 1)).values)
        if (const int maker = uses.maker(value); maker >= 0)
          needed[static_cast<size_t>(joined_.find(op))].push_back(joined_.find(maker));
    }
    const std::vector<int> component = strong_components(needed);
    std::map<int, int> first;
    for (size_t i = 0; i < program_.ops.size(); ++i) {
      const auto op = static_cast<int>(i);
      if (!is_computed(i) || joined_.find(op) != op) continue;
      const auto [place, added] = first.try_emplace(component[i], op);
      if (!added) joined_.join(place->second, op);
    }
  }

  const SafeToCut& safe_;
  const Program& program_;
  const std::vector<bool>& known_;
  const Memory memory_;
  std::vector<bool> active_;
  std::vector<int> set_of_;  // in SafeToCut::together; -1: none
  std::vector<bool> changes_state_;
  std::vector<std::vector<int>> users_;  // of a value
  std::vector<Role> roles_;
  UnionFind joined_;
  std::map<int, std::vector<int>> groups_;  // by their first op
  Grouping result_;
};

}  // namespace

Grouping group_ops(const SafeToCut& safe, const std::vector<bool>& known) {
  return Grouper(safe, known).run();
}

}  // namespace renkei::graph
