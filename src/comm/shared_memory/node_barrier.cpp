#include "comm/shared_memory/node_barrier.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "base/error.h"
#include "base/units.h"

namespace renkei::comm {
namespace {

constexpr size_t kLineBytes = 64;
constexpr int64_t kSliceNanoseconds = 50'000'000;

// At most about 15 us; most waits among ranks with a core each are shorter. More would trip the
// hypervisor's detection of spinning guests.
constexpr int kPolls = 512;
constexpr int kFewestPolls = 16;
// Turns in which others may run, before a system call to sleep and another to be woken pay.
constexpr int kTurns = 60;
constexpr int kTurnsWhenCrowded = 20;
constexpr double kLongTurnSeconds = 100e-6;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Not FUTEX_PRIVATE: the ranks are processes.
void futex_wait(std::atomic<uint32_t>& word, uint32_t expected) {
  const timespec slice{0, kSliceNanoseconds};
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT, expected, &slice, nullptr, 0);
}

void futex_wake_all(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE, INT32_MAX, nullptr, nullptr,
          0);
}

using CoreSet = std::array<std::atomic<uint64_t>, 16>;  // 1024 cores, as glibc's cpu_set_t

}  // namespace

// What a rank says about the operation it enters, 56 bytes that are compared as a whole.
struct NodeBarrier::Entry {
  uint32_t number = 0;
  OperationKind kind = OperationKind::none;
  DType dtype = DType::u8;
  uint8_t reduction = 0;
  uint8_t unused = 0;
  uint64_t count = 0;
  int64_t step = -1;
  uint64_t place = 0;
  char name[24] = {};

  bool reduces() const {
    return kind == OperationKind::allreduce || kind == OperationKind::reduce_scatter;
  }

  // "allreduce of 100 f32"
  std::string text() const {
    if (kind == OperationKind::none) return "nothing";
    if (kind == OperationKind::barrier || kind == OperationKind::close ||
        (kind == OperationKind::exchange && count == 0))
      return std::string(name_of(kind));
    return fmt::format("{} of {} {}", name_of(kind), count, name_of(dtype));
  }

  // With what tells it from the other where that is not the text.
  std::string text_against(const Entry& other) const {
    std::string result = text();
    if (reduces() && other.reduces() && reduction != other.reduction)
      result += fmt::format(" ({})", name_of(static_cast<Reduction>(reduction)));
    if (std::memcmp(name, other.name, sizeof(name)) != 0)
      result += fmt::format(" for \"{}\"", std::string_view(name, strnlen(name, sizeof(name))));
    if (step != other.step) result += fmt::format(" in step {}", step);
    if (place != other.place)
      result +=
          place == 0 ? " in private memory" : fmt::format(" at {:#x} of the shared memory", place);
    return result;
  }
};

struct alignas(kLineBytes) NodeBarrier::Line {
  std::atomic<uint64_t> arrived;  // number of the last barrier
  std::array<std::atomic<uint64_t>, 7> entry;

  // Word by word, because a rank that explains a timeout reads entries that may be changing.
  void write(const Entry& value) {
    std::array<uint64_t, 7> words;
    std::memcpy(words.data(), &value, sizeof(words));
    for (size_t i = 0; i < words.size(); ++i) entry[i].store(words[i], std::memory_order_relaxed);
  }
  Entry read() const {
    std::array<uint64_t, 7> words;
    for (size_t i = 0; i < words.size(); ++i) words[i] = entry[i].load(std::memory_order_relaxed);
    Entry value;
    std::memcpy(static_cast<void*>(&value), words.data(), sizeof(words));
    return value;
  }
  bool same_entry(const Line& other) const {
    uint64_t difference = 0;
    for (size_t i = 0; i < entry.size(); ++i)
      difference |=
          entry[i].load(std::memory_order_relaxed) ^ other.entry[i].load(std::memory_order_relaxed);
    return difference == 0;
  }
};

// The memory of a rank: two lines, whether it has left, on which cores it may run; then, used in
// the memory of the first rank only, the word on which all sleep.
struct alignas(kLineBytes) NodeBarrier::Meeting {
  Line lines[2];
  alignas(kLineBytes) std::atomic<uint32_t> left;
  alignas(kLineBytes) CoreSet cores;
  alignas(kLineBytes) std::atomic<uint32_t> wakeups;
  std::atomic<uint32_t> sleepers;
};

std::string_view name_of(OperationKind kind) {
  switch (kind) {
    case OperationKind::none:
      return "nothing";
    case OperationKind::barrier:
      return "barrier";
    case OperationKind::allocate:
      return "allocate";
    case OperationKind::allreduce:
      return "allreduce";
    case OperationKind::reduce_scatter:
      return "reduce_scatter";
    case OperationKind::all_gather:
      return "all_gather";
    case OperationKind::exchange:
      return "exchange";
    case OperationKind::close:
      return "close";
  }
  return "an unknown operation";
}

NodeBarrier::NodeBarrier(Transport& transport, std::shared_ptr<SharedRegion> region, size_t offset)
    : transport_(transport), region_(std::move(region)), ranks_(local_ranks(transport)) {
  static_assert(sizeof(Meeting) <= kBytes && sizeof(Line) == kLineBytes && sizeof(Entry) == 56);
  static_assert(std::atomic<uint64_t>::is_always_lock_free, "locks of a process are not shared");
  me_ =
      static_cast<int>(std::find(ranks_.begin(), ranks_.end(), transport.rank()) - ranks_.begin());
  // The region is zero, which is what new atomics would be: constructing them could undo an
  // arrival.
  for (int local = 0; local < local_size(); ++local)
    memory_.push_back(region_->part(local).subspan(offset, kBytes).data());
  meeting_ = reinterpret_cast<Meeting*>(memory_[0]);

  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) CPU_SET(0, &allowed);
  CoreSet& cores = reinterpret_cast<Meeting*>(memory_[static_cast<size_t>(me_)])->cores;
  for (size_t word = 0; word < cores.size(); ++word) {
    uint64_t bits = 0;
    for (size_t bit = 0; bit < 64; ++bit)
      if (CPU_ISSET(64 * word + bit, &allowed)) bits |= uint64_t{1} << bit;
    cores[word].store(bits, std::memory_order_relaxed);
  }
  crowded_ = CPU_COUNT(&allowed) < local_size();
  process_ = ::getpid();
}

NodeBarrier::~NodeBarrier() {
  if (::getpid() != process_) return;
  reinterpret_cast<Meeting*>(memory_[static_cast<size_t>(me_)])->left.store(1);
  meeting_->wakeups.fetch_add(1);
  futex_wake_all(meeting_->wakeups);
}

NodeBarrier::Line& NodeBarrier::line(int local) const {
  return reinterpret_cast<Meeting*>(memory_[static_cast<size_t>(local)])->lines[operation_ % 2];
}

std::string NodeBarrier::name_rank(int local) const {
  return name_of_rank(transport_, ranks_[static_cast<size_t>(local)]);
}

void NodeBarrier::enter(const Operation& operation, const Call& call) {
  Entry entry;
  entry.number = static_cast<uint32_t>(operation_);
  entry.kind = operation.kind;
  entry.dtype = operation.dtype;
  entry.reduction = static_cast<uint8_t>(operation.reduction);
  entry.count = operation.count;
  entry.step = call.step;
  entry.place = operation.place;
  std::memcpy(entry.name, call.operation.data(),
              std::min(call.operation.size(), sizeof(entry.name)));
  ++operation_;
  line(me_).write(entry);
  arrive();
  wait(call);
  compare_entries();
  if (!cores_known_) learn_cores();
}

void NodeBarrier::arrive_and_wait(const Call& call) {
  arrive();
  wait(call);
}

// All orders here are sequentially consistent: either a rank that goes to sleep sees the last
// arrival, or the last to arrive sees the sleeper.
void NodeBarrier::arrive() {
  ++sequence_;
  line(me_).arrived.store(sequence_);
  if (meeting_->sleepers.load() == 0 || !all_arrived()) return;
  meeting_->wakeups.fetch_add(1);
  futex_wake_all(meeting_->wakeups);
}

int NodeBarrier::first_missing() const {
  for (int local = 0; local < local_size(); ++local)
    if (line(local).arrived.load() < sequence_) return local;
  return -1;
}

bool NodeBarrier::all_arrived() const {
  return first_missing() < 0;
}

// Polls longer where that has helped before: ranks may share their cores with other programs.
void NodeBarrier::wait(const Call& call) {
  if (!crowded_)
    for (int poll = 0; poll < polls_; ++poll) {
      if (all_arrived()) {
        polls_ = std::min(2 * polls_, kPolls);
        return;
      }
      relax();
    }
  polls_ = std::max(polls_ / 2, kFewestPolls);
  if (!all_arrived()) wait_longer(call);
}

// To yield is to wait for the whole turn of whoever gets the core. When that is not a rank on its
// way here but a program with much to do, sleep: who is woken soon gets a core.
void NodeBarrier::wait_longer(const Call& call) {
  const double begin = transport_.clock().seconds();
  double before = begin;
  int turns = crowded_ ? kTurnsWhenCrowded : kTurns;
  while (!all_arrived()) {
    if (turns > 0)
      sched_yield();
    else
      sleep();
    const double now = transport_.clock().seconds();
    turns = now - before > kLongTurnSeconds ? 0 : turns - 1;
    before = now;
    check_missing(call, now - begin);
  }
}

void NodeBarrier::sleep() {
  meeting_->sleepers.fetch_add(1);
  const uint32_t before = meeting_->wakeups.load();
  if (!all_arrived()) futex_wait(meeting_->wakeups, before);
  meeting_->sleepers.fetch_sub(1);
}

NodeBarrier::Entry NodeBarrier::last_entry(int local) const {
  const auto& lines = reinterpret_cast<const Meeting*>(memory_[static_cast<size_t>(local)])->lines;
  const Entry a = lines[0].read(), b = lines[1].read();
  if (a.kind == OperationKind::none) return b;
  if (b.kind == OperationKind::none) return a;
  return static_cast<int32_t>(a.number - b.number) > 0 ? a : b;
}

void NodeBarrier::check_missing(const Call& call, double waited_seconds) const {
  const int local = first_missing();
  if (local < 0) return;
  const bool left =
      reinterpret_cast<const Meeting*>(memory_[static_cast<size_t>(local)])->left.load() != 0 &&
      line(local).arrived.load() < sequence_;
  const int rank = ranks_[static_cast<size_t>(local)];
  // An end is looked for when a wait has taken as long as a sleep: it is a look into a file.
  const bool ended = !left && waited_seconds > kSliceNanoseconds * 1e-9 &&
                     transport_.has_ended(rank) && line(local).arrived.load() < sequence_;
  if (!left && !ended && waited_seconds < call.timeout_seconds) return;

  const Entry mine = last_entry(me_), last = last_entry(local);
  const auto in_step = [](const Entry& entry) {
    return entry.step >= 0 ? fmt::format(", step {}", entry.step) : std::string();
  };
  std::string message = left || ended
                            ? fmt::format("{} gave up waiting for {}, which has {}", name_rank(me_),
                                          name_rank(local), left ? "left" : "ended")
                            : fmt::format("{} waited {} for {}", name_rank(me_),
                                          format_duration(waited_seconds), name_rank(local));
  message += fmt::format(" in {} ({}), operation {}{}", mine.text(), call.operation, mine.number,
                         in_step(mine));
  if (last.kind == OperationKind::none)
    message += "; that rank has entered nothing yet";
  else if (last.number == mine.number)
    message += "; that rank has entered it but not finished its part";
  else
    message += fmt::format("; what that rank entered last is {} ({}), operation {}{}", last.text(),
                           std::string_view(last.name, strnlen(last.name, sizeof(last.name))),
                           last.number, in_step(last));
  Timeout error(
      ErrorCode::communication, message,
      "look at the log of the rank that did not arrive; when its work takes long, a longer "
      "comm.timeout helps");
  error.rank = transport_.job_rank(rank);
  error.host = transport_.host(rank);
  if (call.step >= 0) error.step = call.step;
  throw error;
}

// Everybody compares everybody with the first rank, so that all tell the same story.
void NodeBarrier::compare_entries() const {
  for (int local = 1; local < local_size(); ++local) {
    if (line(local).same_entry(line(0))) continue;
    const Entry first = line(0).read(), other = line(local).read();
    const int rank = ranks_[static_cast<size_t>(local)];
    Error error(ErrorCode::communication,
                fmt::format("{} called {}, but {} called {} as operation {}", name_rank(0),
                            first.text_against(other), name_rank(local), other.text_against(first),
                            first.number),
                "all ranks must call the same operations with the same sizes in the same order");
    error.rank = transport_.job_rank(rank);
    error.host = transport_.host(rank);
    if (first.step >= 0) error.step = first.step;
    throw error;
  }
}

// Ranks may be bound to a core each, so that what counts is the cores of all of them.
void NodeBarrier::learn_cores() {
  int cores = 0;
  for (size_t word = 0; word < CoreSet().size(); ++word) {
    uint64_t bits = 0;
    for (std::byte* const memory : memory_)
      bits |= reinterpret_cast<const Meeting*>(memory)->cores[word].load(std::memory_order_relaxed);
    cores += __builtin_popcountll(bits);
  }
  crowded_ = cores < local_size();
  cores_known_ = true;
}

}  // namespace renkei::comm
