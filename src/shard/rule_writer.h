// What rules are written with.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "program/effects.h"
#include "shard/rules.h"

namespace renkei::shard {

class RuleWriter {
 public:
  RuleWriter(const program::Program& program, const program::Op& op, const RuleOptions& options);

  const program::Program& program() const { return program_; }
  const program::Op& op() const { return op_; }
  const RuleOptions& options() const { return options_; }
  program::Target target() const { return program::parts_of(op_.target); }
  int parts() const { return options_.parts; }

  // A tensor that an argument names; none: it is left out, or no single tensor.
  program::ValueId tensor(std::string_view argument) const;
  // The first of these arguments that is there.
  program::ValueId tensor(std::initializer_list<std::string_view> names) const;
  const std::vector<program::Size>& sizes(program::ValueId value) const {
    return program_.value(value).sizes;
  }
  int rank_of(program::ValueId value) const { return static_cast<int>(sizes(value).size()); }
  const std::vector<program::Size>& output_sizes() const { return sizes(op_.outputs.front()); }

  // Arguments that are numbers; `otherwise` where they are left out, none where they are computed.
  std::optional<int64_t> integer(std::string_view argument, int64_t otherwise) const;
  std::optional<double> real(std::string_view argument, double otherwise) const;
  std::optional<std::vector<int64_t>> integers(std::string_view argument) const;
  bool flag(std::string_view argument, bool otherwise) const;

  // Whether a dimension of this value can be split into these blocks.
  bool can_split(program::ValueId value, int dim, int64_t blocks) const;
  bool can_split(const program::Size& size, int64_t blocks) const;
  // All splits that a value can have: use(dim, blocks).
  template <typename Use>
  void for_splits(program::ValueId value, const Use& use) const {
    for (int dim = 0; dim < rank_of(value); ++dim)
      for (const int64_t blocks : options_.blocks)
        if (can_split(value, dim, blocks)) use(dim, blocks);
  }

  struct With {
    program::ValueId value;
    Layout layout;
  };
  // Adds a strategy: arguments that are not named are whole, all outputs have one layout.
  Strategy& add(std::string name, std::span<const With> with, const Layout& outputs);
  Strategy& add(std::string name, std::initializer_list<With> with, const Layout& outputs) {
    return add(std::move(name), std::span(with.begin(), with.size()), outputs);
  }

  std::vector<Strategy> take() { return std::move(made_); }

 private:
  const program::Program& program_;
  const program::Op& op_;
  const RuleOptions& options_;
  std::vector<program::ValueId> references_;
  std::vector<Strategy> made_;
};

int normal_dim(int64_t dim, int rank);  // -1 is the last

using Rule = void (*)(RuleWriter& rule);
Rule layer_rule(std::string_view name);  // of an operation of aten; null: none
Rule shape_rule(std::string_view name);

}  // namespace renkei::shard
