// Which values of a program share memory, and which operations change it: views, and what is
// computed in place (program/effects.h).
#pragma once

#include <vector>

#include "program/program.h"

namespace renkei::graph {

// Of a value: the op that makes it and the last that uses it.
inline constexpr int kGiven = -1;  // made by nobody: an input or a state

class Memory {
 public:
  enum class Owner : uint8_t { op, input, state };
  // Values that may share memory.
  struct Class {
    Owner owner = Owner::op;
    std::vector<program::ValueId> members;  // in the order in which they are made
    std::vector<int> writers;               // places of ops, in order
  };

  explicit Memory(const program::Program& program);

  const std::vector<Class>& classes() const { return classes_; }
  int class_of(program::ValueId value) const { return class_of_[static_cast<size_t>(value)]; }
  int maker(program::ValueId value) const { return maker_[static_cast<size_t>(value)]; }
  // The number of ops, if it is an output of the program; kGiven, if nobody uses it.
  int last_use(program::ValueId value) const { return last_use_[static_cast<size_t>(value)]; }
  // Of an op: what it changes, each class once.
  const std::vector<int>& written_classes(int op) const {
    return written_[static_cast<size_t>(op)];
  }

  // Whether memory that `op` changes is used later under another name than that of its result.
  bool is_seen_after(int op, int written_class) const;

 private:
  void find_owners(const program::Program& program);

  std::vector<Class> classes_;
  std::vector<int> class_of_, maker_, last_use_;
  std::vector<std::vector<int>> written_;
  std::vector<std::vector<int>> latest_;  // of a class: the latest use of its first n + 1 members
};

}  // namespace renkei::graph
