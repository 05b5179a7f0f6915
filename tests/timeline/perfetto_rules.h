// What Perfetto asks of a trace in JSON, and what else readers of ours rely on.
#pragma once

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace renkei::test {

// What is wrong, in words; empty: nothing.
//
//   slices of a thread lie beside or within each other
//   both ends of an arrow exist, once each, and lie within a slice of their thread
//   an arrow does not go back in time
//   counters have numbers, processes and threads have names
inline std::vector<std::string> broken_rules(const nlohmann::json& trace) {
  struct Slice {
    int64_t begin, end;
  };
  using Thread = std::pair<int, int>;
  std::vector<std::string> broken;
  const auto nanoseconds = [](const nlohmann::json& microseconds) {
    return std::llround(microseconds.get<double>() * 1000);
  };
  std::map<Thread, std::vector<Slice>> slices;
  std::map<Thread, bool> named;
  std::map<int, std::pair<std::vector<int64_t>, std::vector<int64_t>>> arrows;
  for (const auto& event : trace.at("traceEvents")) {
    const std::string kind = event.at("ph");
    const Thread thread{event.at("pid"), event.value("tid", 0)};
    if (kind == "M" && event.at("name") == "thread_name") named[thread] = true;
    if (kind == "C" && !event.at("args").at("value").is_number())
      broken.push_back("a counter without a number: " + event.dump());
    if (kind != "X") continue;
    const int64_t begin = nanoseconds(event.at("ts"));
    slices[thread].push_back({begin, begin + nanoseconds(event.at("dur"))});
    if (event.at("dur") < 0) broken.push_back("a slice of less than no time: " + event.dump());
  }
  for (auto& [thread, list] : slices) {
    const std::string name =
        "rank " + std::to_string(thread.first) + " thread " + std::to_string(thread.second);
    if (!named[thread]) broken.push_back(name + " has no name");
    std::ranges::stable_sort(list, [](const Slice& a, const Slice& b) {
      return std::pair(a.begin, -a.end) < std::pair(b.begin, -b.end);
    });
    std::vector<int64_t> open;
    for (const Slice& slice : list) {
      while (!open.empty() && open.back() <= slice.begin) open.pop_back();
      if (!open.empty() && slice.end > open.back())
        broken.push_back(name + ": two slices overlap at " + std::to_string(slice.begin) + " ns");
      open.push_back(slice.end);
    }
  }
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") != "s" && event.at("ph") != "f") continue;
    const int64_t at = nanoseconds(event.at("ts"));
    auto& [starts, ends] = arrows[event.at("id")];
    (event.at("ph") == "s" ? starts : ends).push_back(at);
    const auto& list = slices[{event.at("pid"), event.at("tid")}];
    if (std::ranges::none_of(list, [&](const Slice& s) { return s.begin <= at && at < s.end; }))
      broken.push_back("an arrow that no slice holds: " + event.dump());
  }
  for (const auto& [id, both] : arrows)
    if (both.first.size() != 1 || both.second.size() != 1 || both.first[0] > both.second[0])
      broken.push_back("arrow " + std::to_string(id) + " has not one beginning and one later end");
  return broken;
}

}  // namespace renkei::test
