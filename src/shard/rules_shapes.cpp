// Views, transpositions, cuts and concatenations: which split of the input is which of the output.
//
// A view keeps the order of elements. Its dimensions fall into groups with equal products, as
// (batch, 12·64) and (batch, 12, 64) do. Within a group, a split of dimension i into b blocks
// leaves b · n₁ ⋯ nᵢ₋₁ pieces for each rank, where the n are the sizes before it in the group; it
// is a split of that dimension k of the other side that has as many.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "shard/rule_writer.h"

namespace renkei::shard {
namespace {

using program::Argument;
using program::kNoValue;
using program::List;
using program::Op;
using program::Program;
using program::Size;
using program::ValueId;
using With = RuleWriter::With;
using Sizes = std::vector<Size>;

struct Group {
  size_t in_first, in_end, out_first, out_end;
};

// Empty: the sizes have no groups that can be told. What depends on the batch is compared for a
// batch that nothing else is likely to be a multiple of.
std::vector<Group> groups_of(const Program& program, const Sizes& in, const Sizes& out) {
  constexpr int64_t kSamples = 10007;
  const program::SymbolValues symbols = with_batch(program, kSamples);
  std::vector<Group> groups;
  size_t i = 0, o = 0;
  while (i < in.size() || o < out.size()) {
    Group group{i, i, o, o};
    int64_t a = 1, b = 1;
    while (i == group.in_first || o == group.out_first || a != b) {
      const bool can_take_in = i < in.size(), can_take_out = o < out.size();
      const bool in_turn = i == group.in_first || (o != group.out_first && a < b);
      if (in_turn && can_take_in)
        a *= in[i++].value(symbols);
      else if (can_take_out)
        b *= out[o++].value(symbols);
      else if (can_take_in && a < b)
        a *= in[i++].value(symbols);
      else if (a == b)
        break;  // one side has nothing but ones left
      else
        return {};
    }
    // Ones at the end belong to the group before.
    if (o == out.size())
      while (i < in.size() && in[i] == Size(1)) ++i;
    if (i == in.size())
      while (o < out.size() && out[o] == Size(1)) ++o;
    group.in_end = i;
    group.out_end = o;
    groups.push_back(group);
  }
  return groups;
}

// The product of sizes, 0 where one is no number.
int64_t product_of(const Sizes& sizes, size_t first, size_t end) {
  int64_t product = 1;
  for (size_t i = first; i < end; ++i) product *= sizes[i].is_number() ? sizes[i].number() : 0;
  return product;
}

std::optional<Layout> through_view(const RuleWriter& rule, const Sizes& in, const Sizes& out,
                                   const Layout& layout) {
  const auto dim = static_cast<size_t>(layout.dim);
  for (const Group& group : groups_of(rule.program(), in, out)) {
    if (dim < group.in_first || dim >= group.in_end) continue;
    const int64_t pieces = product_of(in, group.in_first, dim) * layout.blocks;
    if (pieces == 0) return {};
    for (size_t k = group.out_first; k < group.out_end; ++k) {
      const int64_t before = product_of(out, group.out_first, k);
      if (before == 0 || pieces % before != 0) return {};
      const int64_t blocks = pieces / before;
      if (out[k] == Size(1)) continue;
      // Blocks that are whole rows of this dimension are counted by the ones behind it.
      if (out[k].is_number() && blocks >= out[k].number()) continue;
      if (rule.can_split(out[k], blocks)) return split(static_cast<int>(k), blocks);
      return {};
    }
  }
  return {};
}

// The list of sizes of a view as one rank has it; none: it can't be said.
std::optional<List> local_list(const RuleWriter& rule, const List& list, const Sizes& out,
                               const Layout& layout) {
  List local;
  int open = 0;
  for (size_t k = 0; k < out.size(); ++k) {
    const bool here = static_cast<int>(k) == layout.dim;
    if (out[k].is_number())
      local.emplace_back(here ? out[k].number() / rule.parts() : out[k].number());
    else if (here)
      local.emplace_back(int64_t{-1});
    else
      local.push_back(list[k]);
    const auto* number = std::get_if<int64_t>(&local.back());
    open += number && *number == -1;
  }
  if (open > 1) return {};
  return local;
}

// The dimensions that a squeeze takes away, by number: of what a rank has, others may be of size 1.
std::optional<List> squeezed(const RuleWriter& rule, const Sizes& in) {
  std::vector<int64_t> asked(in.size());
  std::iota(asked.begin(), asked.end(), 0);
  if (find_argument(rule.op(), "dim")) {
    const auto dims = rule.integers("dim");
    if (!dims) return {};
    asked = *dims;
  }
  List gone;
  for (const int64_t given : asked) {
    const int dim = normal_dim(given, static_cast<int>(in.size()));
    if (in[static_cast<size_t>(dim)] == Size(1)) gone.emplace_back(int64_t{dim});
  }
  return gone;
}

void view(RuleWriter& rule) {
  const ValueId input = rule.tensor("self");
  if (input == kNoValue) return;
  const Sizes& in = rule.sizes(input);
  const Sizes& out = rule.output_sizes();
  // flatten, squeeze and unsqueeze have no sizes to be changed.
  std::string name;
  const List* list = nullptr;
  for (const char* candidate : {"size", "shape"})
    if (const Argument* found = find_argument(rule.op(), candidate)) {
      name = candidate;
      list = std::get_if<List>(found);
    }
  if (!name.empty() && (!list || list->size() != out.size())) return;
  const bool squeezes = rule.target().name == "squeeze";
  const std::optional<List> gone = squeezes ? squeezed(rule, in) : std::nullopt;
  if (squeezes && !gone) return;
  const auto add = [&](const Layout& before, const Layout& after) {
    const auto local = list ? local_list(rule, *list, out, after) : std::optional<List>();
    if (list && !local) return;
    Strategy& made = rule.add(name_of(before), {{input, before}}, after);
    if (list) made.localise = [name, sizes = *local](Op& op) { set_argument(op, name, sizes); };
    if (squeezes)
      made.localise = [dims = *gone](Op& op) {
        op.target = "aten.squeeze.dims";
        set_argument(op, "dim", dims);
      };
  };
  rule.for_splits(input, [&](int dim, int64_t blocks) {
    if (const auto after = through_view(rule, in, out, split(dim, blocks)))
      add(split(dim, blocks), *after);
  });
  if (is_floating(rule.program().value(input).dtype))
    rule.add("partial", {{input, kPartial}}, kPartial).divided = false;
}

void expand(RuleWriter& rule) {
  const ValueId input = rule.tensor("self");
  const Argument* found = find_argument(rule.op(), "size");
  const auto* list = found ? std::get_if<List>(found) : nullptr;
  if (input == kNoValue || !list || list->size() != rule.output_sizes().size()) return;
  const int added = static_cast<int>(rule.output_sizes().size()) - rule.rank_of(input);
  rule.for_splits(input, [&](int dim, int64_t blocks) {
    const int after = dim + added;
    if (rule.sizes(input)[static_cast<size_t>(dim)] !=
        rule.output_sizes()[static_cast<size_t>(after)])
      return;
    List local = *list;
    local[static_cast<size_t>(after)] = int64_t{-1};  // as it is
    rule.add(name_of(split(dim, blocks)), {{input, split(dim, blocks)}}, split(after, blocks))
        .localise = [local](Op& op) { set_argument(op, "size", local); };
  });
}

// after[d]: where dimension d goes; -1: it is gone.
void moved(RuleWriter& rule, ValueId input, const std::vector<int>& after) {
  rule.for_splits(input, [&](int dim, int64_t blocks) {
    const int to = after[static_cast<size_t>(dim)];
    if (to >= 0)
      rule.add(name_of(split(dim, blocks)), {{input, split(dim, blocks)}}, split(to, blocks));
  });
  if (is_floating(rule.program().value(input).dtype))
    rule.add("partial", {{input, kPartial}}, kPartial).divided = false;
}

std::vector<int> in_order(int rank) {
  std::vector<int> dims(static_cast<size_t>(rank));
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

void transpose(RuleWriter& rule) {
  const ValueId input = rule.tensor("self");
  if (input == kNoValue) return;
  const int rank = rule.rank_of(input);
  const auto a = rule.integer("dim0", 0), b = rule.integer("dim1", 1);
  if (!a || !b || rank < 2) return;
  std::vector<int> after = in_order(rank);
  std::swap(after[static_cast<size_t>(normal_dim(*a, rank))],
            after[static_cast<size_t>(normal_dim(*b, rank))]);
  moved(rule, input, after);
}

void permute(RuleWriter& rule) {
  const ValueId input = rule.tensor("self");
  const auto dims = rule.integers("dims");
  if (input == kNoValue || !dims) return;
  std::vector<int> after(dims->size());
  for (size_t to = 0; to < dims->size(); ++to)
    after[static_cast<size_t>(normal_dim((*dims)[to], rule.rank_of(input)))] = static_cast<int>(to);
  moved(rule, input, after);
}

// One dimension goes: select, unbind.
void without_one(RuleWriter& rule) {
  const ValueId input = rule.tensor("self");
  const auto dim = rule.integer("dim", 0);
  if (input == kNoValue || !dim) return;
  std::vector<int> after = in_order(rule.rank_of(input));
  const int gone = normal_dim(*dim, rule.rank_of(input));
  for (int& to : after) to = to == gone ? -1 : to - (to > gone ? 1 : 0);
  moved(rule, input, after);
}

// Equal parts along a dimension: a split into as many blocks is a split of each part.
void cut(RuleWriter& rule, ValueId input, int dim, int64_t count,
         const std::function<void(Op& op)>& localise) {
  std::vector<int> after = in_order(rule.rank_of(input));
  after[static_cast<size_t>(dim)] = -1;
  moved(rule, input, after);
  if (count == 0) return;
  for (const int64_t blocks : rule.options().blocks)
    if (rule.can_split(input, dim, blocks * count) &&
        rule.sizes(input)[static_cast<size_t>(dim)].is_number())
      rule.add(fmt::format("parts {}", name_of(split(dim, blocks * count))),
               {{input, split(dim, blocks * count)}}, split(dim, blocks))
          .localise = localise;
}

struct Cut {
  ValueId input = kNoValue;
  int dim = 0;
  int64_t parts = 0;  // equal ones; 0: they are not
};

Cut cut_of(const RuleWriter& rule) {
  const ValueId input = rule.tensor("self");
  const auto dim = rule.integer("dim", 0);
  if (input == kNoValue || !dim) return {};
  Cut cut{.input = input, .dim = normal_dim(*dim, rule.rank_of(input))};
  const Size& size = rule.sizes(input)[static_cast<size_t>(cut.dim)];
  if (!size.is_number()) return cut;
  int64_t length = 0, start = 0;
  if (rule.target().name == "slice") {
    const int64_t n = size.number();
    const auto at = [&](const char* name, int64_t otherwise) -> std::optional<int64_t> {
      auto place = rule.integer(name, otherwise);
      if (place && *place < 0) *place += n;
      if (place) *place = std::min(*place, n);
      return place;
    };
    const auto from = at("start", 0), to = at("end", n);
    if (!from || !to || rule.integer("step", 1) != 1) return cut;
    start = *from;
    length = *to - *from;
  } else if (rule.target().name == "narrow") {
    const auto from = rule.integer("start", 0), count = rule.integer("length", 0);
    if (!from || !count) return cut;
    start = *from;
    length = *count;
  } else {
    for (const ValueId output : rule.op().outputs) {
      if (output == kNoValue) return cut;
      const Size& part = rule.sizes(output)[static_cast<size_t>(cut.dim)];
      if (!part.is_number() || (length != 0 && part.number() != length)) return cut;
      length = part.number();
    }
  }
  if (length > 0 && size.number() % length == 0 && start % length == 0)
    cut.parts = size.number() / length;
  return cut;
}

void cuts(RuleWriter& rule) {
  const Cut found = cut_of(rule);
  if (found.input == kNoValue) return;
  const int64_t parts = rule.parts();
  const auto divide = [parts](Op& op, const char* name) {
    const Argument* argument = find_argument(op, name);
    if (!argument) return;
    if (const auto* number = std::get_if<int64_t>(argument))
      set_argument(op, name, *number / parts);
    else if (const auto* list = std::get_if<List>(argument)) {
      List local;
      for (const Argument& element : *list) local.emplace_back(std::get<int64_t>(element) / parts);
      set_argument(op, name, local);
    }
  };
  const bool slice = rule.target().name == "slice";
  cut(rule, found.input, found.dim, found.parts, [divide, slice](Op& op) {
    divide(op, "split_size");
    divide(op, "split_sizes");
    divide(op, "start");
    divide(op, "length");
    // The end may be beyond the last.
    const Argument* end = slice ? find_argument(op, "end") : nullptr;
    const auto* number = end ? std::get_if<int64_t>(end) : nullptr;
    if (number && *number < (int64_t{1} << 40)) divide(op, "end");
  });
}

void concatenate(RuleWriter& rule) {
  const Argument* found = find_argument(rule.op(), "tensors");
  const auto* list = found ? std::get_if<List>(found) : nullptr;
  const auto given = rule.integer("dim", 0);
  if (!list || !given) return;
  const ValueId output = rule.op().outputs.front();
  const int along = normal_dim(*given, rule.rank_of(output));
  std::vector<ValueId> parts;
  bool equal = true;
  for (const Argument& element : *list) {
    const auto* reference = std::get_if<program::Reference>(&element);
    if (!reference || rule.rank_of(reference->value) != rule.rank_of(output)) return;
    parts.push_back(reference->value);
    equal = equal && rule.sizes(parts.back()) == rule.sizes(parts.front());
  }
  const auto add = [&](const Layout& each, const Layout& all) {
    std::vector<With> with;
    for (const ValueId part : parts) with.push_back({part, each});
    rule.add(name_of(all), with, all);
  };
  rule.for_splits(output, [&](int dim, int64_t blocks) {
    if (dim != along) add(split(dim, blocks), split(dim, blocks));
  });
  const auto count = static_cast<int64_t>(parts.size());
  if (!equal || !rule.output_sizes()[static_cast<size_t>(along)].is_number()) return;
  for (const int64_t blocks : rule.options().blocks)
    if (rule.can_split(parts.front(), along, blocks))
      add(split(along, blocks), split(along, blocks * count));
}

}  // namespace

Rule shape_rule(std::string_view name) {
  static const std::map<std::string_view, Rule> rules{
      {"view", view},       {"reshape", view},          {"_unsafe_view", view},
      {"flatten", view},    {"unsqueeze", view},        {"squeeze", view},
      {"expand", expand},   {"transpose", transpose},   {"t", transpose},
      {"permute", permute}, {"select", without_one},    {"unbind", without_one},
      {"split", cuts},      {"split_with_sizes", cuts}, {"chunk", cuts},
      {"slice", cuts},      {"narrow", cuts},           {"cat", concatenate}};
  const auto found = rules.find(name);
  return found == rules.end() ? nullptr : found->second;
}

std::vector<int64_t> blocks_of(const Program& program) {
  constexpr int64_t kMost = 8;
  std::set<int64_t> found{1};
  const RuleOptions options{.parts = 1};
  for (const Op& op : program.ops) {
    const program::Target target = program::parts_of(op.target);
    if (target.library != "aten" || op.outputs.empty() || op.outputs.front() == kNoValue) continue;
    const Rule rule = shape_rule(target.name);
    if (!rule) continue;
    const RuleWriter writer(program, op, options);
    if (rule == &cuts) {
      const Cut cut = cut_of(writer);
      if (cut.parts > 1 && cut.parts <= kMost) found.insert(cut.parts);
    } else if (rule == &view) {
      // A dimension of which parts become one of their own: 3·768 → 3, 12, 64.
      const Sizes& out = writer.output_sizes();
      for (size_t k = 0; k + 2 < out.size(); ++k)
        if (out[k].is_number() && out[k].number() > 1 && out[k].number() <= kMost)
          found.insert(out[k].number());
    }
  }
  // One block first.
  return {found.begin(), found.end()};
}

}  // namespace renkei::shard
