#include "data/s3/retry.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <random>
#include <thread>

#include "base/clock.h"
#include "data/s3/xml.h"

namespace renkei::data {
namespace {

constexpr double kFirstPause = 0.1, kLongestPause = 5;

// Between 1/2 and 1. Not reproducible on purpose: ranks that fail together must part.
double by_chance() {
  std::random_device device;
  return std::uniform_real_distribution<double>(0.5, 1)(device);
}

}  // namespace

bool may_pass(const HttpResponse& response) {
  constexpr std::array<int, 7> kStatuses{0, 408, 429, 500, 502, 503, 504};
  if (std::ranges::count(kStatuses, response.status) > 0) return true;
  return response.status == 400 && xml_text(response.body, "Code") == "RequestTimeout";
}

Patience::Patience(double seconds) : begin_(now_seconds()), seconds_(seconds) {}

double Patience::spent_seconds() const {
  return now_seconds() - begin_;
}

bool Patience::wait(double most_seconds) {
  const double pause =
      std::min(kLongestPause, kFirstPause * std::exp2(attempts_ - 1)) * by_chance();
  if (spent_seconds() + pause > std::min(seconds_, most_seconds)) return false;
  std::this_thread::sleep_for(std::chrono::duration<double>(pause));
  ++attempts_;
  return true;
}

}  // namespace renkei::data
