#include "timeline/chrome_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/file.h"

namespace renkei::timeline {
namespace {

constexpr size_t kChunkBytes = 1 << 20;
constexpr int kThreadsOfLane = 16;

int64_t nanoseconds(double seconds) {
  return std::llround(seconds * 1e9);
}

// Whole nanoseconds as microseconds.
std::string microseconds(int64_t nanoseconds) {
  return fmt::format("{}{}.{:03}", nanoseconds < 0 ? "-" : "", std::abs(nanoseconds) / 1000,
                     std::abs(nanoseconds) % 1000);
}

class TraceWriter {
 public:
  explicit TraceWriter(const std::function<void(std::string_view)>& sink) : sink_(sink) {
    text_ = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
  }

  void write(std::span<const RankTimeline> ranks) {
    for (const RankTimeline& rank : ranks) write_rank(rank);
    text_ += "\n]}\n";
    sink_(text_);
  }

 private:
  // Which message: step, from and to rank, from and to stage, micro-batch.
  using Message = std::tuple<int64_t, int, int, int, int, int>;
  struct Slice {
    int64_t begin, end;
    const Event* event;        // or of
    const StepRecord* record;  // a step
  };

  template <typename... Values>
  void line(fmt::format_string<Values...> format, Values&&... values) {
    if (!first_) text_ += ",\n";
    first_ = false;
    fmt::format_to(std::back_inserter(text_), format, std::forward<Values>(values)...);
    if (text_.size() < kChunkBytes) return;
    sink_(text_);
    text_.clear();
  }

  const std::string& quoted(std::string_view name) {
    auto found = quoted_.find(name);
    if (found == quoted_.end())
      found = quoted_.emplace(std::string(name), nlohmann::json(name).dump()).first;
    return found->second;
  }

  void name_thing(const char* what, int rank, int thread, const std::string& name) {
    line(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}}}})", what, rank, thread,
         quoted(name));
  }

  void write_rank(const RankTimeline& rank) {
    const int pid = rank.info.rank;
    name_thing("process_name", pid, 0,
               fmt::format("rank {} on {}{}", pid, rank.info.host,
                           rank.info.predicted ? ", predicted" : ""));
    line(R"({{"ph":"M","name":"process_sort_index","pid":{},"args":{{"sort_index":{}}}}})", pid,
         pid);
    for (int lane = 0; lane < kLanes; ++lane) write_lane(rank, lane);
    for (const StepRecord& step : rank.steps) {
      const std::string at = microseconds(nanoseconds(step.end()));
      if (pid == 0 && step.samples > 0 && step.times.seconds > 0)
        line(
            R"({{"ph":"C","name":"samples per second","pid":{},"ts":{},"args":{{"value":{:.6g}}}}})",
            pid, at, static_cast<double>(step.samples) / step.times.seconds);
      if (step.memory_bytes > 0)
        line(R"({{"ph":"C","name":"memory in MiB","pid":{},"ts":{},"args":{{"value":{:.6g}}}}})",
             pid, at, static_cast<double>(step.memory_bytes) / (1 << 20));
    }
  }

  void write_lane(const RankTimeline& rank, int lane) {
    std::vector<Slice> slices;
    for (const Event& event : rank.events)
      if (event.lane == lane)
        slices.push_back({nanoseconds(event.begin), nanoseconds(event.end), &event, nullptr});
    if (lane == kComputeLane)
      for (const StepRecord& step : rank.steps)
        slices.push_back({nanoseconds(step.begin), nanoseconds(step.end()), nullptr, &step});
    // What encloses comes first.
    std::ranges::stable_sort(slices, [](const Slice& a, const Slice& b) {
      return std::tie(a.begin, b.end) < std::tie(b.begin, a.end);
    });
    std::vector<std::vector<int64_t>> open;  // of each thread, the ends of what is under way
    for (const Slice& slice : slices) {
      const size_t thread = place(slice, open);
      const int tid = kThreadsOfLane * lane + static_cast<int>(thread);
      if (thread == open.size() - 1 && open[thread].empty() && !named_[{rank.info.rank, tid}]) {
        named_[{rank.info.rank, tid}] = true;
        name_thing("thread_name", rank.info.rank, tid, std::string(name_of_lane(lane)));
      }
      open[thread].push_back(slice.end);
      write_slice(slice, rank.info.rank, tid);
    }
  }

  // The first thread on which a slice lies beside or within the others.
  static size_t place(const Slice& slice, std::vector<std::vector<int64_t>>& open) {
    for (size_t thread = 0; thread < open.size(); ++thread) {
      auto& ends = open[thread];
      while (!ends.empty() && ends.back() <= slice.begin) ends.pop_back();
      if (ends.empty() || slice.end <= ends.back()) return thread;
    }
    open.emplace_back();
    return open.size() - 1;
  }

  void write_slice(const Slice& slice, int rank, int tid) {
    const std::string at = microseconds(slice.begin),
                      length = microseconds(slice.end - slice.begin);
    if (slice.record) {
      line(R"({{"ph":"X","name":"step {}","cat":"step","pid":{},"tid":{},"ts":{},"dur":{}}})",
           slice.record->step, rank, tid, at, length);
      return;
    }
    const Event& event = *slice.event;
    std::string details = fmt::format(R"("step":{},"index":{})", event.step, event.index);
    if (event.stage >= 0) details += fmt::format(R"(,"stage":{})", event.stage);
    if (event.peer >= 0) details += fmt::format(R"(,"peer":{})", event.peer);
    if (event.bytes > 0) details += fmt::format(R"(,"bytes":{})", event.bytes);
    line(R"({{"ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})",
         quoted(event.name), name_of(event.category), rank, tid, at, length, details);
    if (event.peer < 0 || event.peer_stage < 0 || slice.end - slice.begin < 2) return;
    const bool sends = event.name == "send", receives = event.name == "receive";
    if (!sends && !receives) return;
    const Message message =
        sends ? Message{event.step, rank, event.peer, event.stage, event.peer_stage, event.index}
              : Message{event.step, event.peer, rank, event.peer_stage, event.stage, event.index};
    const auto id = arrows_.try_emplace(message, arrows_.size()).first->second;
    line(R"({{"ph":"{}","name":"message","cat":"message","id":{},"pid":{},"tid":{},"ts":{}{}}})",
         sends ? "s" : "f", id, rank, tid, microseconds(sends ? slice.begin + 1 : slice.end - 1),
         sends ? "" : R"(,"bp":"e")");
  }

  const std::function<void(std::string_view)>& sink_;
  std::string text_;
  bool first_ = true;
  std::map<std::string, std::string, std::less<>> quoted_;
  std::map<std::pair<int, int>, bool> named_;
  std::map<Message, size_t> arrows_;
};

}  // namespace

void write_chrome_trace(std::span<const RankTimeline> ranks,
                        const std::function<void(std::string_view)>& sink) {
  TraceWriter(sink).write(ranks);
}

void write_chrome_trace(std::span<const RankTimeline> ranks, const std::filesystem::path& file) {
  const std::filesystem::path aside = file.string() + ".part";
  {
    std::ofstream output(aside, std::ios::binary);
    errno = 0;
    write_chrome_trace(ranks, [&](std::string_view text) {
      output.write(text.data(), static_cast<std::streamsize>(text.size()));
    });
    output.close();
    if (!output) throw_file_error("write", aside, errno ? errno : EIO);
  }
  std::filesystem::rename(aside, file);
}

}  // namespace renkei::timeline
