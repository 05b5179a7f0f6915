#include "timeline/rank_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "timeline/file_layout.h"

namespace renkei::timeline {
namespace {

namespace fs = std::filesystem;
using layout::kHeaderBytes;

constexpr int64_t kFirstEvents = 4096, kFirstSteps = 1024;

fs::path file_of(const fs::path& directory, int rank, const char* what) {
  return directory / fmt::format("rank-{}.{}", rank, what);
}

template <size_t bytes>
void copy_text(std::string_view text, char (&into)[bytes]) {
  const size_t length = std::min(text.size(), bytes - 1);
  std::memcpy(into, text.data(), length);
  into[length] = 0;
}

layout::Offset stored(const ClockOffset& offset) {
  return {offset.at, offset.seconds, offset.error};
}

size_t bytes_of_events(int64_t count) {
  return kHeaderBytes + static_cast<size_t>(count) * sizeof(layout::Slice);
}

}  // namespace

struct RankFile::Header : layout::Header {};

RankFile::Header& RankFile::header() {
  return *reinterpret_cast<Header*>(events_->data());
}

RankFile::RankFile(const RankFileOptions& options, const RankInfo& info)
    : most_events_(std::max<int64_t>(1, options.most_events)) {
  make_directories(options.directory);
  events_ =
      std::make_unique<MappedFile>(file_of(options.directory, info.rank, "events"),
                                   bytes_of_events(std::min<int64_t>(kFirstEvents, most_events_)));
  steps_ = std::make_unique<MappedFile>(file_of(options.directory, info.rank, "steps"),
                                        kFirstSteps * sizeof(layout::Step));
  Header& head = header();
  head.rank = info.rank;
  head.ranks = info.ranks;
  head.origin = info.origin;
  head.wall_seconds = info.wall_seconds;
  head.first = stored(info.first);
  head.last = stored(info.last);
  head.predicted = info.predicted;
  head.most_events = most_events_;
  head.now = {.entered = 0, .left = 0, .step = -1, .stage = -1, .index = 0, .peer = -1, .name = 0};
  copy_text(info.host, head.host);
  number_of("");
  head.magic = layout::kMagic;  // last: without it this is no timeline
}

RankFile::~RankFile() = default;

// A disk that fills up must not end the training.
template <typename Work>
void RankFile::guarded(Work work) {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) return;
  try {
    work();
  } catch (const Error& error) {
    failure_ = error.message;
  }
}

uint16_t RankFile::number_of(std::string_view name) {
  if (const auto known = numbers_.find(name); known != numbers_.end()) return known->second;
  Header& head = header();
  const int number = head.names;
  if (number == static_cast<int>(layout::kMostNames)) return 0;
  copy_text(name, head.name[number]);
  head.names = number + 1;
  return numbers_[std::string(name)] = static_cast<uint16_t>(number);
}

void RankFile::add(const Event& event) {
  guarded([&] {
    const int64_t place = header().written % most_events_;
    if (const size_t needed = bytes_of_events(place + 1); needed > events_->size())
      events_->grow(std::min(2 * events_->size(), bytes_of_events(most_events_)));
    Header& head = header();
    auto* slices = reinterpret_cast<layout::Slice*>(events_->data() + kHeaderBytes);
    slices[place] = {.begin = event.begin,
                     .end = event.end,
                     .step = event.step,
                     .bytes = event.bytes,
                     .stage = event.stage,
                     .index = event.index,
                     .peer = event.peer,
                     .peer_stage = event.peer_stage,
                     .name = number_of(event.name),
                     .category = static_cast<uint8_t>(event.category),
                     .lane = static_cast<uint8_t>(event.lane),
                     .unused = {}};
    head.written.fetch_add(1, std::memory_order_release);
  });
}

void RankFile::add(const StepRecord& record) {
  guarded([&] {
    if (static_cast<size_t>(written_steps_ + 1) * sizeof(layout::Step) > steps_->size())
      steps_->grow(2 * steps_->size());
    layout::Step& step = reinterpret_cast<layout::Step*>(steps_->data())[written_steps_++];
    step.begin = record.begin;
    step.seconds = record.times.seconds;
    std::ranges::copy(record.times.by_category, step.by_category);
    step.hidden_communication = record.hidden_communication;
    step.samples = record.samples;
    step.memory_bytes = record.memory_bytes;
    std::atomic_thread_fence(std::memory_order_release);
    step.number = static_cast<uint64_t>(record.step) + 1;
  });
}

void RankFile::enter(const Event& event) {
  guarded([&] {
    header().now = {.entered = event.begin,
                    .left = 0,
                    .step = event.step,
                    .stage = event.stage,
                    .index = event.index,
                    .peer = event.peer,
                    .name = number_of(event.name)};
  });
}

void RankFile::leave(double now) {
  guarded([&] { header().now.left = now; });
}

void RankFile::set_last_offset(const ClockOffset& offset) {
  guarded([&] { header().last = stored(offset); });
}

void RankFile::finish() {
  guarded([&] { header().finished = 1; });
}

}  // namespace renkei::timeline
