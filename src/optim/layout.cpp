#include "optim/layout.h"

#include "base/error.h"

namespace renkei::optim {

std::vector<Segment> make_segments(std::span<const Parameter> parameters, bool separate) {
  std::vector<Segment> segments;
  size_t last_end = 0;
  for (size_t p = 0; p < parameters.size(); ++p) {
    const auto& [offset, count, decays] = parameters[p];
    if (offset < last_end)
      throw Error(ErrorCode::bug,
                  fmt::format("parameter {} starts at {} in the flat buffer, before the end of "
                              "the one in front of it at {}",
                              p, offset, last_end));
    last_end = offset + count;
    if (!separate && !segments.empty() && segments.back().decays == decays)
      segments.back().end = last_end;
    else
      segments.push_back({offset, last_end, p, decays});
  }
  return segments;
}

}  // namespace renkei::optim
