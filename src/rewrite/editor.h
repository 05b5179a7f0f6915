// A program while it is being rewritten: who makes and who uses a value, what may be moved where,
// and changes that keep the rest as it is.
//
// Operations are named by their place in the list. An erased one leaves its place empty, so places
// stay what they are until something is inserted; take() closes the gaps.
#pragma once

#include <span>

#include "program/program.h"

namespace renkei::rewrite {

using program::Op;
using program::Program;
using program::Value;
using program::ValueId;

class Editor {
 public:
  // `trained_inputs`: gradients of the program's inputs are asked for, too.
  Editor(Program program, bool training, bool trained_inputs);

  const Program& program() const { return program_; }
  int places() const { return static_cast<int>(program_.ops.size()); }
  const Op& op(int place) const { return program_.ops[static_cast<size_t>(place)]; }
  bool is_empty(int place) const { return op(place).target.empty(); }
  bool is(int place, std::string_view target) const { return op(place).target == target; }
  const Value& value(ValueId id) const { return program_.value(id); }

  int producer(ValueId id) const;                // its place; -1: an input, or state
  std::span<const int> users(ValueId id) const;  // in order, each once
  bool is_output(ValueId id) const;              // of the program
  bool is_state(ValueId id) const;
  // The place of the only operation that uses it, and once; -1: there are others, or it is an
  // output of the program.
  int only_user(ValueId id) const;

  // An operation other than its producer changes its memory, or may do so through a view.
  bool is_written(ValueId id) const;
  // Values other than this one that share its memory, or may do so.
  std::vector<ValueId> sharing_memory_with(ValueId id) const;
  bool needs_gradient(ValueId id) const;
  // The operation at `from` may as well be done at a later place: nothing in between writes what
  // it reads, or touches what it writes, or draws random numbers if it does. (That nobody uses its
  // results before is for the caller to see.)
  bool can_move_down(int from, int to) const;

  void replace(int place, Op op);
  void set(int place, std::string_view name, program::Argument value);
  void erase(int place);
  void insert_before(int place, Op op);  // later places move up by one
  void set_ops(std::vector<Op> ops);
  // In the operations after `after`, and as an output of the program.
  void replace_uses(ValueId from, ValueId to, int after = -1);
  void set_output(size_t port, ValueId id);
  void set_sizes(ValueId id, std::vector<program::Size> sizes);
  void set_dtype(ValueId id, program::DType dtype);
  ValueId add_value(Value value);

  // "layer1.0.bn3", or the name of the first result.
  std::string where(int place) const;

  // Without gaps and without values that nobody mentions; check()ed.
  Program take();

 private:
  struct Facts {  // derived from the program
    std::vector<int> producer;
    std::vector<std::vector<int>> users;
    std::vector<int> mentions;  // as an argument, and as an output of the program
    std::vector<bool> output, state, gradient;
    std::vector<ValueId> root;  // whose memory it shares
    std::vector<bool> written;  // of a root
  };
  const Facts& facts() const;
  void add_facts(int place) const;
  void join_memory(ValueId a, ValueId b) const;
  void drop_unmentioned_values();
  void renumber(const std::vector<ValueId>& now);
  void changed() { known_ = false; }

  Program program_;
  bool training_, trained_inputs_;
  mutable Facts facts_;
  mutable bool known_ = false;
};

}  // namespace renkei::rewrite
