#include "study/study.h"

namespace renkei::study {

std::optional<double> Row::error() const {
  const std::optional<double>& ours = simulated ? simulated : measured;
  if (!published || !ours) return std::nullopt;
  if (unit == "%") return *ours - *published;
  return *ours / *published - 1;
}

}  // namespace renkei::study
