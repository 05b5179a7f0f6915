#pragma once

#include <string>

namespace renkei::data {

enum class S3Addressing { automatic, path, host };

struct S3Options {
  std::string endpoint = {};  // "http://store:9000"; empty: from the environment, or else Amazon
  std::string region = {};    // empty: from the environment, or else us-east-1
  S3Addressing addressing = S3Addressing::automatic;
  double timeout_seconds = 20;    // of one attempt: without an answer, or without progress
  double patience_seconds = 120;  // for attempts that failed for a reason that may pass
};

}  // namespace renkei::data
