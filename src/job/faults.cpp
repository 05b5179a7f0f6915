#include "job/faults.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "base/error.h"

namespace renkei::job {
namespace {

std::vector<std::string_view> split_at(std::string_view text, char mark) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t at = text.find(mark);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

struct Fault {
  int64_t rank = -1, step = -1;
};

Fault parse_fault(std::string_view text, const std::string& setting) {
  Fault fault;
  for (const std::string_view word : split_at(text, ',')) {
    const size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    int64_t* value = name == "rank" ? &fault.rank : name == "step" ? &fault.step : nullptr;
    const std::string_view number =
        equals == std::string_view::npos ? std::string_view() : word.substr(equals + 1);
    if (!value || std::from_chars(number.data(), number.data() + number.size(), *value).ptr !=
                      number.data() + number.size())
      fault.rank = -1;
  }
  if (fault.rank < 0 || fault.step < 0)
    throw Error(ErrorCode::usage, fmt::format("{}: '{}' is no fault", setting, text),
                "write rank=1,step=20");
  return fault;
}

}  // namespace

void declare_fault_settings(Settings& settings) {
  const auto declare = [&](const char* name, const char* help) {
    settings.declare({.name = name, .kind = SettingKind::text, .default_value = "", .help = help});
  };
  declare("fault.kill", "a rehearsal: kill a rank before a step, as in rank=1,step=20");
  declare("fault.stop", "a rehearsal: a rank stops without ending");
  declare("fault.slow", "a rehearsal: a rank is a second late in every step from this one on");
  declare("fault.nan", "a rehearsal: a parameter of a rank is no number any more");
  declare("fault.corrupt_gradient", "a rehearsal: the gradients of a rank are wrong in a step");
  declare("fault.drift", "a rehearsal: a parameter of a rank is not that of its replicas any more");
  declare("fault.enospc", "a rehearsal: from a step on, the disk of a rank is full when it saves");
  declare("fault.drop_link", "a rehearsal: a rank lives, but nothing comes from it any more");
}

Faults::Faults(const Settings& settings, int rank, int earlier_starts) {
  const auto read = [&](const std::string& name) -> std::optional<int64_t> {
    const std::string& text = settings.text(name);
    if (text.empty()) return {};
    std::vector<Fault> faults;
    for (const std::string_view part : split_at(text, ';'))
      faults.push_back(parse_fault(part, name));
    const auto now = static_cast<size_t>(earlier_starts);
    if (now >= faults.size() || faults[now].rank != rank) return {};
    return faults[now].step;
  };
  kill_ = read("fault.kill");
  stop_ = read("fault.stop");
  slow_ = read("fault.slow");
  nan_ = read("fault.nan");
  corrupt_gradient_ = read("fault.corrupt_gradient");
  drift_ = read("fault.drift");
  enospc_ = read("fault.enospc");
  drop_link_ = read("fault.drop_link");
}

int Faults::earlier_starts() {
  const char* text = std::getenv(kStartsVariable);
  return text ? std::max(0, std::atoi(text)) : 0;
}

void Faults::before_step(int64_t step) const {
  if (kill_ == step) ::raise(SIGKILL);
  if (stop_ == step) ::raise(SIGSTOP);
  while (drop_link_ == step) std::this_thread::sleep_for(std::chrono::hours(1));
  if (slow_ && step >= *slow_) std::this_thread::sleep_for(std::chrono::seconds(1));
}

}  // namespace renkei::job
