#pragma once

#include "data/s3/http.h"

namespace renkei::data {

// Whether a request may succeed when it is sent again: no answer, or one that blames the moment.
bool may_pass(const HttpResponse& response);

// The pauses between attempts.
class Patience {
 public:
  explicit Patience(double seconds);

  // Sleeps before the next attempt; false when this or `most_seconds` would be exceeded.
  bool wait(double most_seconds);
  int attempts() const { return attempts_; }
  double spent_seconds() const;

 private:
  double begin_, seconds_;
  int attempts_ = 1;
};

}  // namespace renkei::data
