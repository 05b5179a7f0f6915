#include "schedule/evaluate.h"

#include <algorithm>

#include "base/error.h"
#include "schedule/walk.h"

namespace renkei::schedule {
namespace {

using plan::Shape;
using plan::StageTimes;

constexpr double kNever = -1;
// So many schedules are kept; a search comes back to the same few shapes.
constexpr size_t kMostKept = 64;

// What differs between lists of groups and lists of ranks: who computes a stage, and the times.
class GroupTimes {
 public:
  GroupTimes(const Shape& shape, std::span<const StageTimes> times)
      : shape_(shape), times_(times) {}

  size_t lists() const { return static_cast<size_t>(shape_.groups()); }
  int micro_batches() const { return shape_.micro_batches; }
  size_t sets() const { return times_.size(); }
  int stages() const { return shape_.stages; }
  int members(int) const { return 1; }

  template <typename Visit>
  void for_peers(size_t, const Task& task, Visit visit) const {
    visit(static_cast<size_t>(shape_.group_of(task.peer)), channel(task));
  }
  double transfer(size_t, size_t, const Task& send) const {
    const StageTimes& upper = times_[static_cast<size_t>(std::min(send.stage, send.peer))];
    // `send_backward` belongs to the stage that the gradient flows to.
    return send.peer > send.stage ? upper.send_forward : upper.send_backward;
  }
  double seconds(size_t, const Task& task) const {
    if (task.stage >= shape_.stages) return 0;
    const StageTimes& times = times_[static_cast<size_t>(task.stage)];
    switch (task.kind) {
      case TaskKind::forward:
        return times.forward;
      case TaskKind::backward:
        return times.backward();
      case TaskKind::backward_input:
        return times.backward_input;
      case TaskKind::backward_weight:
        return times.backward_weight;
      case TaskKind::update:
        return times.update + times.gather;
      default:
        return 0;
    }
  }
  RankedStep::Reduction reduction(int set) const {
    if (set >= shape_.stages) return {};  // tied ones count to their stages
    const StageTimes& times = times_[static_cast<size_t>(set)];
    return {times.reduce, times.buckets};
  }
  static std::vector<double> ends(int, std::span<const RankedStep::Behind>) { return {}; }

 private:
  // Of a border and direction.
  static size_t channel(const Task& task) {
    const bool sends = task.kind == TaskKind::send;
    const int from = sends ? task.stage : task.peer, to = sends ? task.peer : task.stage;
    return 2 * static_cast<size_t>(std::min(from, to)) + (to > from ? 0 : 1);
  }

  const Shape& shape_;
  std::span<const StageTimes> times_;
};

class RankTimes {
 public:
  explicit RankTimes(const RankedStep& step) : step_(step) {}

  size_t lists() const { return step_.lists.size(); }
  int micro_batches() const { return step_.micro_batches; }
  size_t sets() const { return step_.ranks_of.size(); }
  int stages() const { return step_.stages; }
  int members(int set) const {
    return static_cast<int>(step_.ranks_of[static_cast<size_t>(set)].size());
  }

  // Those that have samples in common with this rank: replica i of r has those of [i/r, (i + 1)/r).
  template <typename Visit>
  void for_peers(size_t list, const Task& task, Visit visit) {
    const auto& here = step_.ranks_of[static_cast<size_t>(task.stage)];
    const auto& there = step_.ranks_of[static_cast<size_t>(task.peer)];
    const auto mine = std::ranges::find(here, static_cast<int>(list)) - here.begin();
    const auto r = static_cast<int64_t>(here.size()), q = static_cast<int64_t>(there.size());
    for (int64_t other = 0; other < q; ++other) {
      if (other * r >= (mine + 1) * q || mine * q >= (other + 1) * r) continue;
      const auto peer = static_cast<size_t>(there[static_cast<size_t>(other)]);
      const bool sends = task.kind == TaskKind::send;
      const Key key =
          sends ? Key{list, peer, task.stage, task.peer} : Key{peer, list, task.peer, task.stage};
      visit(peer, channels_.try_emplace(key, channels_.size()).first->second);
    }
  }
  double transfer(size_t from, size_t to, const Task& send) const {
    return step_.transfer(static_cast<int>(from), static_cast<int>(to), send);
  }
  double seconds(size_t list, const Task& task) const {
    return step_.seconds(static_cast<int>(list), task);
  }
  RankedStep::Reduction reduction(int set) const {
    return step_.reduce ? RankedStep::Reduction{} : step_.reductions[static_cast<size_t>(set)];
  }
  std::vector<double> ends(int set, std::span<const RankedStep::Behind> members) const {
    return step_.reduce ? step_.reduce(set, members) : std::vector<double>{};
  }

 private:
  using Key = std::tuple<size_t, size_t, int, int>;
  const RankedStep& step_;
  std::map<Key, size_t> channels_;
};

template <typename Times>
class VirtualStep {
 public:
  VirtualStep(Times times, Record record)
      : times_(std::move(times)),
        record_(record),
        now_(times_.lists()),
        network_free_(times_.lists()),
        busy_(times_.lists()),
        begun_(times_.lists(), kNone),
        events_(times_.lists()),
        sets_(times_.sets()) {}

  bool ready(size_t list, const Task& task) {
    switch (task.kind) {
      case TaskKind::receive: {
        bool all = true;
        times_.for_peers(list, task, [&](size_t, size_t channel) {
          all = all && message(channel, task).arrival != kNever;
        });
        return all;
      }
      case TaskKind::reduce:
        return !set_of(task).ends.empty();
      case TaskKind::norm:
      case TaskKind::loss:
        return arrive(meeting_of(task), list);
      default:
        return true;
    }
  }

  void visit(size_t list, const Task& task) {
    double& now = now_[list];
    const double begin = now;
    switch (task.kind) {
      case TaskKind::send:
      case TaskKind::expect:
        times_.for_peers(list, task, [&](size_t peer, size_t channel) {
          begin_transfer(list, peer, channel, task);
        });
        break;
      case TaskKind::receive:
        times_.for_peers(list, task, [&](size_t, size_t channel) {
          now = std::max(now, message(channel, task).arrival);
        });
        break;
      case TaskKind::begin_reduce:
        if (task.stage < times_.stages())
          begun_[list] = task.stage;
        else  // of tied parameters everything is computed already
          complete(task.stage, list, now);
        break;
      case TaskKind::reduce:
        now = std::max(now, end_on(set_of(task), list));
        break;
      case TaskKind::norm:
      case TaskKind::loss:
        now = meeting_of(task).time + times_.seconds(list, task);
        break;
      default:
        now += times_.seconds(list, task);
        if (is_compute(task.kind)) computed(list, task, begin);
    }
    const bool apart =
        is_compute(task.kind) || task.kind == TaskKind::reduce || task.kind == TaskKind::update;
    if (record_ == Record::all || (record_ == Record::events && apart))
      events_[list].push_back({task, begin, now});
  }

  Evaluation result() && {
    return {.seconds = *std::ranges::max_element(now_),
            .busy_seconds = std::move(busy_),
            .events = std::move(events_)};
  }

 private:
  static constexpr int kNone = -1;
  struct Message {
    double sent = kNever, expected = kNever, arrival = kNever;
  };
  // Parameters whose gradients are reduced together.
  struct Set {
    std::vector<RankedStep::Behind> members = {};  // where they are complete
    std::vector<double> ends = {};                 // on each of them, when all are known
  };
  // All meet, and go on when the last has come.
  struct Meeting {
    std::vector<bool> here = {};
    size_t count = 0;
    double time = 0;
  };

  Set& set_of(const Task& task) {
    const auto set = static_cast<size_t>(task.stage);
    if (set >= sets_.size()) sets_.resize(set + 1);
    return sets_[set];
  }
  Meeting& meeting_of(const Task& task) { return task.kind == TaskKind::norm ? norm_ : loss_; }

  bool arrive(Meeting& meeting, size_t list) {
    meeting.here.resize(now_.size());
    if (!meeting.here[list]) {
      meeting.here[list] = true;
      ++meeting.count;
      meeting.time = std::max(meeting.time, now_[list]);
    }
    return meeting.count == now_.size();
  }

  Message& message(size_t channel, const Task& task) {
    const size_t index = channel * static_cast<size_t>(times_.micro_batches()) +
                         static_cast<size_t>(task.micro_batch);
    if (index >= messages_.size()) messages_.resize(2 * index + 16);
    return messages_[index];
  }

  void begin_transfer(size_t list, size_t peer, size_t channel, const Task& task) {
    const bool sends = task.kind == TaskKind::send;
    Message& transfer = message(channel, task);
    if (sends) {
      transfer.sent = now_[list];
      transfer_seconds(channel) = times_.transfer(list, peer, task);
    } else {
      transfer.expected = now_[list];
    }
    if (transfer.sent == kNever || transfer.expected == kNever) return;
    Link& link = links_[channel];
    link.free = std::max({link.free, transfer.sent, transfer.expected}) + link.seconds;
    transfer.arrival = link.free;
  }

  struct Link {
    double free = 0, seconds = 0;
  };
  double& transfer_seconds(size_t channel) {
    if (channel >= links_.size()) links_.resize(2 * channel + 8);
    return links_[channel].seconds;
  }

  void computed(size_t list, const Task& task, double begin) {
    busy_[list] += now_[list] - begin;
    if (begun_[list] != task.stage) return;
    begun_[list] = kNone;
    complete(task.stage, list, begin);
  }

  // The gradients of a rank, which it has computed since `begin`.
  void complete(int number, size_t list, double begin) {
    if (static_cast<size_t>(number) >= sets_.size()) sets_.resize(static_cast<size_t>(number) + 1);
    Set& set = sets_[static_cast<size_t>(number)];
    set.members.push_back({static_cast<int>(list), begin, now_[list], network_free_[list]});
    if (static_cast<int>(set.members.size()) < times_.members(number)) return;
    set.ends = times_.ends(number, set.members);
    if (set.ends.empty()) set.ends.assign(set.members.size(), common_end(number, set.members));
    for (size_t i = 0; i < set.ends.size(); ++i)
      network_free_[static_cast<size_t>(set.members[i].rank)] = set.ends[i];
  }

  static double end_on(const Set& set, size_t list) {
    const auto member =
        std::ranges::find(set.members, static_cast<int>(list), &RankedStep::Behind::rank);
    return set.ends[static_cast<size_t>(member - set.members.begin())];
  }

  double common_end(int number, std::span<const RankedStep::Behind> members) const {
    const RankedStep::Reduction reduction = times_.reduction(number);
    const int buckets = std::max(1, reduction.buckets);
    double begin = 0, last = 0;
    for (const RankedStep::Behind& member : members) {
      const double first = member.begin + (member.end - member.begin) / buckets;
      begin = std::max({begin, first, member.network_free});
      last = std::max(last, member.end);
    }
    return std::max(begin + reduction.seconds, last + reduction.seconds / buckets);
  }

  Times times_;
  Record record_;
  std::vector<double> now_, network_free_, busy_;  // by list
  std::vector<int> begun_;                         // the reduction that comes with the next compute
  std::vector<std::vector<Event>> events_;
  std::vector<Set> sets_;
  std::vector<Message> messages_;
  std::vector<Link> links_;
  Meeting norm_, loss_;
};

template <typename Times>
Evaluation execute(const std::vector<TaskList>& lists, Times times, Record record,
                   std::string_view what) {
  VirtualStep<Times> step(std::move(times), record);
  const auto stopped = walk(
      lists, [&](size_t list, const Task& task) { return step.ready(list, task); },
      [&](size_t list, const Task& task) { step.visit(list, task); });
  for (size_t list = 0; list < lists.size(); ++list)
    if (stopped[list] < lists[list].size())
      throw Error(ErrorCode::bug, fmt::format("{} {} waits for ever at {}", what, list,
                                              name_of(lists[list][stopped[list]].kind)));
  return std::move(step).result();
}

}  // namespace

double Evaluation::bubble() const {
  if (seconds <= 0) return 0;
  double busy = 0;
  for (const double of_group : busy_seconds) busy += of_group;
  return 1 - busy / (seconds * static_cast<double>(busy_seconds.size()));
}

Evaluation evaluate(const Schedule& schedule, const Shape& shape,
                    std::span<const StageTimes> stages, Record record) {
  return execute(schedule, GroupTimes(shape, stages), record, "group");
}

Evaluation evaluate(const RankedStep& step, Record record) {
  return execute(step.lists, RankTimes(step), record, "rank");
}

std::vector<plan::InFlight> in_flight(const Schedule& schedule, const Shape& shape) {
  std::vector<plan::InFlight> now(static_cast<size_t>(shape.stages)), most(now.size());
  for (const TaskList& tasks : schedule)
    for (const Task& task : tasks) {
      const auto stage = static_cast<size_t>(task.stage);
      plan::InFlight& here = now[stage];
      if (task.kind == TaskKind::forward) {
        most[stage].all = std::max(most[stage].all, ++here.all);
        most[stage].whole = std::max(most[stage].whole, ++here.whole);
      }
      if (task.kind == TaskKind::backward || task.kind == TaskKind::backward_input) --here.whole;
      if (task.kind == TaskKind::backward || task.kind == TaskKind::backward_weight) --here.all;
    }
  return most;
}

const Schedule& ScheduledSteps::schedule_of(const Shape& shape) const {
  auto found = schedules_.find(shape);
  if (found != schedules_.end()) return found->second;
  if (schedules_.size() >= kMostKept) schedules_.clear();
  return schedules_.emplace(shape, make_schedule(shape)).first->second;
}

double ScheduledSteps::step_seconds(const Shape& shape, std::span<const StageTimes> stages) const {
  return evaluate(schedule_of(shape), shape, stages).seconds;
}

std::vector<plan::InFlight> ScheduledSteps::in_flight(const Shape& shape) const {
  const auto found = in_flight_.find(shape);
  if (found != in_flight_.end()) return found->second;
  return in_flight_.emplace(shape, schedule::in_flight(schedule_of(shape), shape)).first->second;
}

}  // namespace renkei::schedule
