#include "checkpoint/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "base/error.h"
#include "comm/collectives/broadcast.h"
#include "comm/collectives/gather.h"

namespace renkei::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";

template <typename Number>
void share_from_first(comm::Transport& transport, Number& number, const comm::Call& call) {
  comm::broadcast(transport, std::as_writable_bytes(std::span(&number, 1)), 0, call);
}

// What is wrong with those files that this rank looks at; empty: nothing.
std::string find_fault(const Reader& reader, int rank, int ranks) {
  try {
    const auto& files = reader.manifest().files;
    for (auto i = static_cast<size_t>(rank); i < files.size(); i += static_cast<size_t>(ranks))
      reader.verify(files[i]);
  } catch (const Error& error) {
    return error.message;
  }
  return {};
}

std::optional<Reader> try_open(const fs::path& directory, std::string& fault) {
  try {
    return Reader(directory);
  } catch (const Error& error) {
    fault = error.message;
    return {};
  }
}

// The manifest goes first: what is half removed is no checkpoint.
std::error_code remove_one(const fs::path& directory) {
  std::error_code error;
  fs::remove(directory / "manifest.json", error);
  if (!error) fs::remove_all(directory, error);
  return error;
}

// The best checkpoint by a metric, of those that have it.
std::optional<int64_t> best_of(const std::vector<Found>& found, const std::string& metric) {
  std::optional<std::pair<double, int64_t>> best;
  for (const Found& one : found) {
    std::string fault;
    const auto reader = one.has_manifest ? try_open(one.directory, fault) : std::nullopt;
    if (!reader) continue;
    const auto& metrics = reader->manifest().progress.metrics;
    const auto value = metrics.find(metric);
    if (value == metrics.end()) continue;
    const double worth = metric == "accuracy" ? value->second : -value->second;
    if (!best || worth > best->first) best = {worth, one.step};
  }
  return best ? std::optional(best->second) : std::nullopt;
}

}  // namespace

fs::path directory_of(const fs::path& checkpoints, int64_t step) {
  return checkpoints / fmt::format("{}{:08}", kPrefix, step);
}

std::string shard_name(int rank) {
  return fmt::format("rank-{}.safetensors", rank);
}

std::vector<Found> find_checkpoints(const fs::path& checkpoints) {
  std::vector<Found> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(checkpoints, none)) {
    const std::string name = entry.path().filename();
    int64_t step = 0;
    if (!name.starts_with(kPrefix)) continue;
    const char *begin = name.data() + kPrefix.size(), *end = name.data() + name.size();
    const auto parsed = std::from_chars(begin, end, step);
    if (parsed.ec != std::errc() || parsed.ptr != end || step < 0) continue;
    found.push_back({.step = step,
                     .directory = entry.path(),
                     .has_manifest = fs::exists(entry.path() / "manifest.json", none)});
  }
  std::ranges::sort(found, std::ranges::greater{}, &Found::step);
  return found;
}

std::optional<Reader> open_newest(const fs::path& checkpoints, comm::Transport& transport,
                                  const comm::Call& call,
                                  const std::function<void(const std::string&)>& tell) {
  const bool first = transport.rank() == 0;
  std::vector<Found> found;
  if (first)
    for (const Found& one : find_checkpoints(checkpoints))
      if (one.has_manifest) found.push_back(one);
  auto candidates = static_cast<int64_t>(found.size());
  share_from_first(transport, candidates, call);
  for (int64_t i = 0; i < candidates; ++i) {
    int64_t step = first ? found[static_cast<size_t>(i)].step : 0;
    share_from_first(transport, step, call);
    const fs::path directory = directory_of(checkpoints, step);
    std::string fault;
    std::optional<Reader> reader = try_open(directory, fault);
    if (reader) fault = find_fault(*reader, transport.rank(), transport.size());
    int64_t whole = 1;
    for (const std::string& text : comm::gather_texts(transport, fault, call)) {
      if (text.empty()) continue;
      if (whole && tell) tell(fmt::format("the checkpoint of step {} is not used: {}", step, text));
      whole = 0;
    }
    share_from_first(transport, whole, call);
    if (whole) return reader;
  }
  return {};
}

Reader open_newest(const fs::path& checkpoints) {
  std::string faults;
  for (const Found& one : find_checkpoints(checkpoints)) {
    if (!one.has_manifest) continue;
    std::string fault;
    std::optional<Reader> reader = try_open(one.directory, fault);
    if (reader) fault = find_fault(*reader, 0, 1);
    if (fault.empty()) return std::move(*reader);
    faults += "; " + fault;
  }
  throw Error(ErrorCode::data,
              fmt::format("{} has no checkpoint that is whole{}", checkpoints.string(), faults),
              "name a directory that has step-… directories in it, or a file of weights");
}

std::vector<std::string> prune(const fs::path& checkpoints, int64_t newest,
                               const Retention& retention) {
  const std::vector<Found> found = find_checkpoints(checkpoints);
  std::set<int64_t> kept;
  int left = retention.last;
  for (const Found& one : found)
    if (one.step > newest || (one.has_manifest && --left >= 0)) kept.insert(one.step);
  if (!retention.best_by.empty())
    if (const auto best = best_of(found, retention.best_by)) kept.insert(*best);
  std::vector<std::string> failures;
  for (const Found& one : found) {
    if (kept.contains(one.step)) continue;
    if (const auto error = remove_one(one.directory))
      failures.push_back(fmt::format("{}: {}", one.directory.string(), error.message()));
  }
  return failures;
}

void remove_after(const fs::path& checkpoints, int64_t step) {
  for (const Found& one : find_checkpoints(checkpoints))
    if (one.step > step) remove_one(one.directory);
}

}  // namespace renkei::checkpoint
