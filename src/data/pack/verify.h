#pragma once

#include <string>
#include <vector>

#include "data/parallel.h"
#include "data/source/source.h"

namespace renkei::data {

struct VerifyOptions {
  bool decode = false;  // also decode each image whole, not only compare checksums
  int threads = 0;
  Progress progress = nullptr;
};

struct BadSample {
  int64_t sample = 0;
  std::string reason;  // names file and offset
};

// Reads every sample; returns the bad ones in their order.
std::vector<BadSample> verify(const Source& source, const VerifyOptions& options);

}  // namespace renkei::data
