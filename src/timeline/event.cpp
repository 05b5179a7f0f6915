#include "timeline/event.h"

namespace renkei::timeline {

std::string_view name_of(Category category) {
  switch (category) {
    case Category::compute:
      return "compute";
    case Category::communication:
      return "communication";
    case Category::wait:
      return "wait";
    case Category::imbalance:
      return "imbalance";
    case Category::bubble:
      return "bubble";
    case Category::data:
      return "data";
    case Category::update:
      return "update";
    case Category::checkpoint:
      return "checkpoint";
    case Category::other:
      return "other";
  }
  return "";
}

std::string_view name_of_lane(int lane) {
  switch (lane) {
    case kCommunicationLane:
      return "communication";
    case kInputOutputLane:
      return "input and output";
    case kOperationLane:
      return "operations";
    default:
      return "compute";
  }
}

StepTimes& StepTimes::operator+=(const StepTimes& other) {
  seconds += other.seconds;
  for (size_t c = 0; c < by_category.size(); ++c) by_category[c] += other.by_category[c];
  return *this;
}

}  // namespace renkei::timeline
