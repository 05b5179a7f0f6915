// Prints what the tables of effects.h say, for effects_against_torch.py. A line of the input is a
// target and its arguments, each with a letter for its kind: "aten.dropout.default input:t p:f
// train:b". Booleans are true, numbers above every bound.
#include <fmt/format.h>

#include <iostream>
#include <sstream>

#include "program/effects.h"

namespace {

using namespace renkei::program;

Argument argument_of(char kind) {
  switch (kind) {
    case 't':
      return Reference{0};
    case 'l':
      return List{Reference{0}};
    case 'b':
      return true;
    case 'f':
      return 0.5;
    case 'i':
      return int64_t{2};
    default:
      return None{};
  }
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    Op op;
    words >> op.target;
    for (std::string word; words >> word;)
      op.arguments.push_back({word.substr(0, word.size() - 2), argument_of(word.back())});
    std::cout << fmt::format("{}\t{}\t{}\t{}\t{}\n", op.target, fmt::join(writes(op), ","),
                             alias_of(op), draws(op), differentiable(op));
  }
}
