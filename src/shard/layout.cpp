#include "shard/layout.h"

#include <fmt/format.h>

namespace renkei::shard {

using program::Program;
using program::Size;

std::string name_of(const Layout& layout) {
  switch (layout.kind) {
    case Layout::Kind::whole:
      return "whole";
    case Layout::Kind::copied:
      return "copied";
    case Layout::Kind::partial:
      return "partial";
    case Layout::Kind::split:
      break;
  }
  return layout.blocks == 1 ? fmt::format("split {}", layout.dim)
                            : fmt::format("split {}/{}", layout.dim, layout.blocks);
}

int64_t batch_unit(const Program& program, const Size& size) {
  const std::string_view batch = batch_symbol(program);
  if (size.is_number() || batch.empty() || !size.mentions(batch)) return 0;
  for (const program::Symbol& symbol : program.symbols)
    if (symbol.name != batch && size.mentions(symbol.name)) return 0;
  const auto at = [&](int64_t samples) { return size.value(with_batch(program, samples)); };
  const int64_t unit = at(1);
  for (const int64_t samples : {2, 3, 7})
    if (at(samples) != unit * samples) return 0;
  return unit;
}

Size local_size(const Program& program, const Size& size, const Part& part) {
  if (size.is_number()) return size.number() / part.parts;
  return Size::expression(fmt::format("{}*(({} + {})//{})", batch_unit(program, size),
                                      batch_symbol(program), part.parts - 1 - part.index,
                                      part.parts));
}

std::vector<Size> local_sizes(const Program& program, const std::vector<Size>& sizes,
                              const Layout& layout, const Part& part) {
  std::vector<Size> local = sizes;
  if (layout.is_split()) {
    Size& size = local[static_cast<size_t>(layout.dim)];
    size = local_size(program, size, part);
  }
  return local;
}

}  // namespace renkei::shard
