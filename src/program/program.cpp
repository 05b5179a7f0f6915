#include "program/program.h"

namespace renkei::program {

std::string_view batch_symbol(const Program& program) {
  for (const Symbol& symbol : program.symbols)
    if (symbol.batch) return symbol.name;
  return {};
}

}  // namespace renkei::program
