#include "schedule/validate.h"

#include <fmt/format.h>

#include <deque>
#include <map>
#include <set>

#include "schedule/evaluate.h"
#include "schedule/walk.h"

namespace renkei::schedule {
namespace {

using plan::Shape;

class Checker {
 public:
  explicit Checker(const Shape& shape) : shape_(shape) {}

  bool ready(const Task& task) const {
    if (task.kind != TaskKind::receive) return true;
    const auto sent = on_the_way_.find({task.peer, task.stage});
    return sent != on_the_way_.end() && !sent->second.empty();
  }

  void visit(size_t group, const Task& task) {
    if (task.kind == TaskKind::norm || task.kind == TaskKind::loss) return;
    if (task.stage < 0 || task.stage >= shape_.stages || task.micro_batch < 0 ||
        task.micro_batch >= shape_.micro_batches)
      return complain(task, "is out of range");
    if (shape_.group_of(task.stage) != static_cast<int>(group))
      complain(task, fmt::format("is done by group {}", group));
    if (task.kind == TaskKind::send) return send(task);
    if (task.kind == TaskKind::expect) return expect(group, task);
    if (task.kind == TaskKind::receive) return receive(group, task);
    need_inputs(task);
    if (!done_.insert({task.kind, task.stage, task.micro_batch}).second)
      complain(task, "is done twice");
  }

  void finish() {
    for (const auto& [link, messages] : on_the_way_)
      if (!messages.empty())
        problems_.push_back(fmt::format("stage {} never receives micro-batch {} from stage {}",
                                        link.second, messages.front(), link.first));
    for (int stage = 0; stage < shape_.stages; ++stage) {
      for (int m = 0; m < shape_.micro_batches; ++m)
        if (!did(TaskKind::forward, stage, m) || !whole_backward(stage, m))
          problems_.push_back(fmt::format("stage {} leaves micro-batch {} out", stage, m));
      if (!did(TaskKind::update, stage, 0))
        problems_.push_back(fmt::format("stage {} is never updated", stage));
    }
  }

  std::vector<std::string> problems_;

 private:
  bool did(TaskKind kind, int stage, int m) const { return done_.contains({kind, stage, m}); }
  bool received(int from, int stage, int m) const { return received_.contains({from, stage, m}); }
  bool whole_backward(int stage, int m) const {
    return did(TaskKind::backward, stage, m) ||
           (did(TaskKind::backward_input, stage, m) && did(TaskKind::backward_weight, stage, m));
  }

  void complain(const Task& task, const std::string& why) {
    problems_.push_back(fmt::format("{} of micro-batch {} on stage {} {}", name_of(task.kind),
                                    task.micro_batch, task.stage, why));
  }

  void need_inputs(const Task& task) {
    const int stage = task.stage, m = task.micro_batch;
    bool there = true;
    switch (task.kind) {
      case TaskKind::forward:
        there = stage == 0 ? did(TaskKind::load, 0, m) : received(stage - 1, stage, m);
        break;
      case TaskKind::backward:
      case TaskKind::backward_input:
        there = did(TaskKind::forward, stage, m) &&
                (stage == shape_.stages - 1 || received(stage + 1, stage, m)) &&
                !did(TaskKind::backward, stage, m) && !did(TaskKind::backward_input, stage, m);
        break;
      case TaskKind::backward_weight:
        there = did(TaskKind::backward_input, stage, m);
        break;
      case TaskKind::begin_reduce:
        there = forwards_of(stage) == shape_.micro_batches;
        break;
      case TaskKind::reduce:
        there = did(TaskKind::begin_reduce, stage, 0);
        for (int each = 0; each < shape_.micro_batches; ++each)
          there = there && whole_backward(stage, each);
        break;
      case TaskKind::update:
        there = did(TaskKind::reduce, stage, 0);
        break;
      default:
        break;
    }
    if (!there) complain(task, "comes before what it needs, or twice");
  }

  void send(const Task& task) {
    const bool down = task.peer == task.stage + 1, up = task.peer == task.stage - 1;
    if ((!down && !up) || task.peer < 0 || task.peer >= shape_.stages)
      return complain(task, "does not go to a neighbour");
    const bool computed = down ? did(TaskKind::forward, task.stage, task.micro_batch)
                               : did(TaskKind::backward, task.stage, task.micro_batch) ||
                                     did(TaskKind::backward_input, task.stage, task.micro_batch);
    if (!computed) complain(task, "comes before its value");
    on_the_way_[{task.stage, task.peer}].push_back(task.micro_batch);
  }

  int forwards_of(int stage) const {
    int count = 0;
    for (int m = 0; m < shape_.micro_batches; ++m) count += did(TaskKind::forward, stage, m);
    return count;
  }

  void expect(size_t group, const Task& task) {
    if (expected_.contains(group)) complain(task, "is expected while another is");
    expected_[group] = task;
  }

  void receive(size_t group, const Task& task) {
    const auto expected = expected_.find(group);
    if (expected == expected_.end() || expected->second.micro_batch != task.micro_batch ||
        expected->second.stage != task.stage || expected->second.peer != task.peer)
      complain(task, "is received, though another was expected");
    expected_.erase(group);
    std::deque<int>& messages = on_the_way_[{task.peer, task.stage}];
    if (messages.front() != task.micro_batch)
      complain(task, fmt::format("gets micro-batch {} instead", messages.front()));
    messages.pop_front();
    received_.insert({task.peer, task.stage, task.micro_batch});
  }

  const Shape& shape_;
  std::set<std::tuple<TaskKind, int, int>> done_;              // stage, micro-batch
  std::map<size_t, Task> expected_;                            // by group
  std::set<std::tuple<int, int, int>> received_;               // from, stage, micro-batch
  std::map<std::pair<int, int>, std::deque<int>> on_the_way_;  // from, to
};

}  // namespace

std::vector<std::string> problems(const Schedule& schedule, const Shape& shape,
                                  const std::vector<int>& most_in_flight) {
  Checker checker(shape);
  const auto stopped = walk(
      schedule, [&](size_t, const Task& task) { return checker.ready(task); },
      [&](size_t group, const Task& task) { checker.visit(group, task); });
  for (size_t group = 0; group < schedule.size(); ++group)
    if (stopped[group] < schedule[group].size()) {
      const Task& task = schedule[group][stopped[group]];
      checker.problems_.push_back(
          fmt::format("group {} waits for ever at its receive of micro-batch {} from stage {}",
                      group, task.micro_batch, task.peer));
    }
  checker.finish();
  if (!checker.problems_.empty()) return checker.problems_;
  const auto most = in_flight(schedule, shape);
  for (size_t stage = 0; stage < most.size(); ++stage)
    if (most[stage].all > most_in_flight[stage])
      checker.problems_.push_back(fmt::format("stage {} has {} micro-batches in flight, not {}",
                                              stage, most[stage].all, most_in_flight[stage]));
  return checker.problems_;
}

}  // namespace renkei::schedule
