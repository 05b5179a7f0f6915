#include "timeline/chrome_trace.h"

#include <nlohmann/json.hpp>

namespace renkei::timeline {
namespace {

constexpr double kMicroseconds = 1e6;

const char* name_of_lane(int lane) {
  return lane == 0 ? "tasks" : "reduction";
}

nlohmann::json metadata(const char* what, int rank, int lane, const std::string& name) {
  return {{"ph", "M"}, {"name", what}, {"pid", rank}, {"tid", lane}, {"args", {{"name", name}}}};
}

}  // namespace

std::string trace_events(std::span<const Event> events, int rank, const std::string& host,
                         double origin) {
  std::string lines =
      metadata("process_name", rank, 0, "rank " + std::to_string(rank) + " on " + host).dump();
  for (const int lane : {0, 1})
    lines += ",\n" + metadata("thread_name", rank, lane, name_of_lane(lane)).dump();
  for (const Event& event : events) {
    const nlohmann::json line{{"ph", "X"},
                              {"name", event.name},
                              {"cat", name_of(event.category)},
                              {"pid", rank},
                              {"tid", event.lane},
                              {"ts", (event.begin - origin) * kMicroseconds},
                              {"dur", (event.end - event.begin) * kMicroseconds},
                              {"args", {{"step", event.step}, {"index", event.index}}}};
    lines += ",\n" + line.dump();
  }
  return lines;
}

std::string chrome_trace(const std::vector<std::string>& events_of_ranks) {
  std::string text = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
  for (size_t rank = 0; rank < events_of_ranks.size(); ++rank)
    text += (rank ? ",\n" : "") + events_of_ranks[rank];
  return text + "\n]}\n";
}

}  // namespace renkei::timeline
