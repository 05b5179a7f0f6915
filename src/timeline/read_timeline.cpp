#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "timeline/file_layout.h"
#include "timeline/rank_file.h"

namespace renkei::timeline {
namespace {

namespace fs = std::filesystem;
using layout::kHeaderBytes;

// Clocks run at slightly different speeds: between the two times at which they were compared the
// offset is a straight line.
class CommonClock {
 public:
  explicit CommonClock(const RankInfo& info) : info_(info) {
    const double between = info.last.at - info.first.at;
    if (between > 1) slope_ = (info.last.seconds - info.first.seconds) / between;
  }
  double operator()(double time) const {
    return time + info_.first.seconds + slope_ * (time - info_.first.at) - info_.origin;
  }

 private:
  const RankInfo& info_;
  double slope_ = 0;
};

template <size_t bytes>
std::string text_of(const char (&text)[bytes]) {
  return {text, strnlen(text, bytes)};
}

ClockOffset loaded(const layout::Offset& offset) {
  return {.at = offset.at, .seconds = offset.seconds, .error = offset.error};
}

void read_events(const std::string& bytes, const layout::Header& head, const CommonClock& clock,
                 RankTimeline& timeline) {
  const auto room = static_cast<int64_t>((bytes.size() - kHeaderBytes) / sizeof(layout::Slice));
  const int64_t written = head.written;
  const int64_t kept = std::min({written, head.most_events, room});
  timeline.dropped_events = written - kept;
  const auto* slices = reinterpret_cast<const layout::Slice*>(bytes.data() + kHeaderBytes);
  timeline.events.reserve(static_cast<size_t>(kept));
  for (int64_t i = written - kept; i < written; ++i) {
    const layout::Slice& slice = slices[i % head.most_events];
    const bool known = slice.name < timeline.names->size();
    timeline.events.push_back(
        {.name = known ? (*timeline.names)[slice.name] : std::string_view(),
         .category = static_cast<Category>(std::min<int>(slice.category, kCategories - 1)),
         .begin = clock(slice.begin),
         .end = clock(slice.end),
         .step = slice.step,
         .index = slice.index,
         .lane = std::min<int>(slice.lane, kLanes - 1),
         .stage = slice.stage,
         .peer = slice.peer,
         .peer_stage = slice.peer_stage,
         .bytes = slice.bytes});
    timeline.last_seen = std::max(timeline.last_seen, timeline.events.back().end);
  }
}

void read_steps(const fs::path& file, const CommonClock& clock, RankTimeline& timeline) {
  const std::string bytes = read_file(file);
  const auto* steps = reinterpret_cast<const layout::Step*>(bytes.data());
  for (size_t i = 0; i < bytes.size() / sizeof(layout::Step) && steps[i].number > 0; ++i) {
    StepRecord record{.step = static_cast<int64_t>(steps[i].number) - 1,
                      .begin = clock(steps[i].begin),
                      .times = {.seconds = steps[i].seconds},
                      .hidden_communication = steps[i].hidden_communication,
                      .samples = steps[i].samples,
                      .memory_bytes = steps[i].memory_bytes};
    std::ranges::copy(steps[i].by_category, record.times.by_category.begin());
    timeline.last_seen = std::max(timeline.last_seen, record.end());
    timeline.steps.push_back(record);
  }
}

}  // namespace

RankTimeline read_rank_file(const fs::path& directory, int rank) {
  const fs::path file = directory / fmt::format("rank-{}.events", rank);
  const std::string bytes = read_file(file);
  if (bytes.size() < kHeaderBytes) throw Error(ErrorCode::data, file.string() + " is cut short");
  const auto& head = *reinterpret_cast<const layout::Header*>(bytes.data());
  if (head.magic != layout::kMagic || head.most_events < 1 || head.written < 0 || head.names < 0 ||
      head.names > static_cast<int>(layout::kMostNames))
    throw Error(ErrorCode::data, file.string() + " is not a timeline of this version of renkei");
  RankTimeline timeline;
  timeline.info = {.rank = head.rank,
                   .ranks = head.ranks,
                   .host = text_of(head.host),
                   .origin = head.origin,
                   .wall_seconds = head.wall_seconds,
                   .predicted = head.predicted != 0,
                   .first = loaded(head.first),
                   .last = loaded(head.last)};
  std::vector<std::string> names;
  for (int i = 0; i < head.names; ++i) names.push_back(text_of(head.name[i]));
  timeline.names = std::make_shared<const std::vector<std::string>>(std::move(names));
  timeline.finished = head.finished != 0;
  const CommonClock clock(timeline.info);
  read_events(bytes, head, clock, timeline);
  read_steps(directory / fmt::format("rank-{}.steps", rank), clock, timeline);
  const layout::Now& now = head.now;
  const auto name = static_cast<size_t>(now.name);
  timeline.last = {.name = name < timeline.names->size() ? (*timeline.names)[name] : "",
                   .step = now.step,
                   .stage = now.stage,
                   .index = now.index,
                   .peer = now.peer,
                   .entered = clock(now.entered),
                   .left = clock(now.left)};
  if (now.entered > 0)
    timeline.last_seen = std::max({timeline.last_seen, timeline.last.entered, timeline.last.left});
  return timeline;
}

std::vector<RankTimeline> read_timeline(const fs::path& directory) {
  std::vector<RankTimeline> ranks;
  for (int rank = 0, count = 1; rank < count; ++rank) {
    if (!fs::exists(directory / fmt::format("rank-{}.events", rank))) {
      if (rank == 0) break;
      continue;
    }
    ranks.push_back(read_rank_file(directory, rank));
    count = std::max(count, ranks.back().info.ranks);
  }
  return ranks;
}

}  // namespace renkei::timeline
