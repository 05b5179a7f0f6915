#include "report/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

#include "report/table.h"

namespace renkei::report {
namespace {

constexpr int kLeastBar = 5;
constexpr int kMostBar = 30;

// 0:42, 12:05, 1:02:03, 3 d 4 h
std::string clock_time(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(std::clamp(seconds, 0.0, 1e12)));
  const int64_t hours = whole / 3600, minutes = whole / 60 % 60;
  if (hours >= 48) return fmt::format("{} d {} h", hours / 24, hours % 24);
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
  return fmt::format("{}:{:02}", minutes, whole % 60);
}

std::string rate_text(double rate, std::string_view unit) {
  const std::string number =
      rate >= 100 ? fmt::format("{:.0f}", rate) : fmt::format("{:.3g}", rate);
  return unit.empty() ? number + "/s" : fmt::format("{} {}/s", number, unit);
}

std::string loss_text(double loss) {
  const double size = std::abs(loss);
  return size == 0 || (size >= 1e-3 && size < 1e4) ? fmt::format("loss {:.3f}", loss)
                                                   : fmt::format("loss {:.3g}", loss);
}

std::string count_text(const ProgressState& state) {
  std::string text = state.label + (state.label.empty() ? "" : " ") + std::to_string(state.done);
  if (state.total) text += fmt::format("/{}", *state.total);
  return state.unit.empty() ? text : text + " " + state.unit;
}

std::string bar(const ProgressState& state, int inner_width) {
  const double share = *state.total > 0 ? static_cast<double>(state.done) / *state.total : 1;
  const int filled = static_cast<int>(inner_width * std::clamp(share, 0.0, 1.0));
  return fmt::format("[{:#>{}}{:.>{}}]", "", filled, "", inner_width - filled);
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts)
    if (!part.empty()) text += (text.empty() ? "" : "  ") + part;
  return text;
}

}  // namespace

ProgressOptions progress_on_stderr() {
  return {.terminal = ::isatty(STDERR_FILENO) == 1};
}

Progress::Progress(ProgressOptions options) : options_(std::move(options)) {
  if (!options_.sink)
    options_.sink = [](std::string_view text) {
      std::fwrite(text.data(), 1, text.size(), stderr);
      std::fflush(stderr);
    };
}

Progress::~Progress() {
  if (line_open_) options_.sink("\n");
}

void Progress::update(ProgressState state) {
  now_ = options_.clock();
  const bool first = !begin_seconds_;
  // A count that steps back or has another goal is new work, with a speed of its own.
  if (first || state.done < state_.done || state.total != state_.total) {
    start_seconds_ = now_;
    start_done_ = state.done;
  }
  if (first) begin_seconds_ = now_;
  state_ = std::move(state);
  finished_ = false;
  const double pause = options_.terminal ? options_.redraw_seconds : options_.line_seconds;
  if (first || now_ - drawn_seconds_ >= pause) draw(false);
}

void Progress::finish() {
  if (finished_ || !begin_seconds_) return;
  now_ = options_.clock();
  draw(true);
  finished_ = true;
}

std::string Progress::measured_rate() const {
  const std::string& unit = state_.rate_unit.empty() ? state_.unit : state_.rate_unit;
  if (state_.rate) return rate_text(*state_.rate, unit);
  const double seconds = now_ - start_seconds_;
  if (seconds <= 0 || state_.done == start_done_) return "";
  return rate_text(static_cast<double>(state_.done - start_done_) / seconds, unit);
}

std::string Progress::time_left() const {
  const double seconds = now_ - start_seconds_;
  if (!state_.total || seconds <= 0 || state_.done == start_done_) return "";
  const double rate = static_cast<double>(state_.done - start_done_) / seconds;
  const auto remaining = static_cast<double>(std::max<int64_t>(0, *state_.total - state_.done));
  return clock_time(remaining / rate) + " left";
}

int Progress::columns() const {
  if (options_.columns > 0) return options_.columns;
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string Progress::line(bool finished) const {
  std::vector<std::string> parts{
      count_text(state_), "", measured_rate(), state_.loss ? loss_text(*state_.loss) : "",
      finished ? "took " + clock_time(now_ - *begin_seconds_) : time_left()};
  if (!options_.terminal) return joined(parts);

  // The last column stays free: some terminals wrap as soon as it is written.
  const int room = columns() - 1;
  const int for_bar = room - display_width(joined(parts)) - 4;  // two blanks, two brackets
  if (state_.total && for_bar >= kLeastBar) parts[1] = bar(state_, std::min(for_bar, kMostBar));
  for (const size_t least_wanted : {2, 3, 4})
    if (display_width(joined(parts)) > room) parts[least_wanted].clear();
  return std::string(cut_to_width(joined(parts), room));
}

void Progress::draw(bool finished) {
  drawn_seconds_ = now_;
  if (!options_.terminal) {
    options_.sink(line(finished) + "\n");
    return;
  }
  options_.sink(fmt::format("\r{}\x1b[K{}", line(finished), finished ? "\n" : ""));
  line_open_ = !finished;
}

}  // namespace renkei::report
