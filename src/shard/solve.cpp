#include "shard/solve.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "graph/safe_to_cut.h"
#include "program/effects.h"
#include "program/work.h"

namespace renkei::shard {
namespace {

using program::Op;
using program::Program;
using program::ValueId;

// The layouts in which a value is there, as bits of its table; and the one in which it began.
struct There {
  uint64_t layouts = 0;
  int begin = 0;
  bool operator==(const There&) const = default;
};
using State = std::vector<There>;  // of each value of the frontier

struct HashOfState {
  size_t operator()(const State& state) const {
    uint64_t hash = 0x9E3779B97F4A7C15;
    for (const There& there : state)
      hash =
          (hash ^ there.layouts ^ (static_cast<uint64_t>(there.begin) << 56)) * 0xD6E8FEB86659FD93;
    return hash ^ hash >> 32;
  }
};

struct Node {
  int before = -1;
  int strategy = 0;
};

class Solver {
 public:
  Solver(const Program& given, const SolveOptions& options)
      : divisible_(make_divisible(given)),
        program_(divisible_.program),
        options_(options),
        symbols_(with_batch(program_, options.costs.samples)),
        gradient_(graph::values_with_gradient(program_)),
        tables_(program_.values.size()),
        state_of_(program_.values.size(), -1),
        place_(program_.values.size(), -1) {
    rules_ = {.parts = options.parts,
              .batch = options.batch,
              .counted_dropout = options.counted_dropout,
              .blocks = blocks_of(program_)};
    for (size_t i = 0; i < program_.state.size(); ++i)
      state_of_[at(program_.state[i].value)] = static_cast<int>(i);
    check_pins();
    find_last_uses();
  }

  Solution run() {
    current_ = {{State{}, 0.0, -1}};
    for (const program::Port& input : program_.inputs)
      if (last_use_[at(input.value)] >= 0) add_to_frontier(input.value, kWhole);
    for (size_t op = 0; op < program_.ops.size(); ++op) advance(op);
    finish();
    const auto best = std::ranges::min_element(current_, {}, &Candidate::seconds);
    Solution solution{.choice = {}, .seconds = best->seconds, .exact = exact_};
    int node = best->node;
    for (size_t op = program_.ops.size(); op-- > 0;) {
      const Node& taken = nodes_[at(node)];
      if (taken.strategy > 0)
        solution.choice[key_of(program_, program_.ops[op])] = chosen_names_[op][at(taken.strategy)];
      node = taken.before;
    }
    return solution;
  }

 private:
  struct Candidate {
    State state;
    double seconds;
    int node;
  };

  static size_t at(int64_t i) { return static_cast<size_t>(i); }

  void check_pins() const {
    for (const Pin& pin : options_.pins) {
      bool used = false;
      for (const program::State& state : program_.state) {
        if (find_pin(options_.pins, state) != &pin) continue;
        used = true;
        if (!pin.layout.is_split()) continue;
        const auto sizes = program::sizes_of(program_.value(state.value), {});
        if (pin.layout.dim >= std::ssize(sizes) ||
            sizes[at(pin.layout.dim)] % (options_.parts * pin.layout.blocks) != 0)
          throw Error(
              ErrorCode::usage,
              fmt::format("{} of sizes {} can't be split along dimension {} over {} ranks",
                          state.name, fmt::join(sizes, " × "), pin.layout.dim, options_.parts),
              "choose another dimension or another number of ranks (plan.tensor)");
      }
      if (!used)
        throw Error(ErrorCode::usage, fmt::format("the network has no parameter '{}'", pin.name),
                    "renkei model show NAME lists them; * stands for anything");
    }
  }

  void find_last_uses() {
    last_use_.assign(program_.values.size(), -1);
    for (size_t op = 0; op < program_.ops.size(); ++op)
      for (const ValueId value : program::references(program_.ops[op]))
        last_use_[at(value)] = static_cast<int>(op);
    for (const program::Port& output : program_.outputs)
      last_use_[at(output.value)] = static_cast<int>(program_.ops.size());
  }

  // --- layouts of values ---

  int number_of(ValueId value, const Layout& layout) {
    std::vector<Layout>& table = tables_[at(value)];
    const auto found = std::ranges::find(table, layout);
    if (found != table.end()) return static_cast<int>(found - table.begin());
    table.push_back(layout);
    return static_cast<int>(table.size()) - 1;
  }

  std::vector<Layout> available(ValueId value, const There& there) const {
    std::vector<Layout> list;
    const std::vector<Layout>& table = tables_[at(value)];
    for (size_t i = 0; i < table.size(); ++i)
      if (there.layouts >> i & 1) list.push_back(table[i]);
    return list;
  }

  void add_to_frontier(ValueId value, const Layout& layout) {
    place_[at(value)] = static_cast<int>(frontier_.size());
    frontier_.push_back(value);
    const int number = number_of(value, layout);
    for (Candidate& candidate : current_)
      candidate.state.push_back({uint64_t{1} << number, number});
  }

  // --- costs ---

  double bytes(ValueId value) const {
    return static_cast<double>(program::bytes_of(program_.value(value), symbols_));
  }

  double half_allreduce(double bytes) const {
    const Costs& costs = options_.costs;
    return (costs.allreduce_latency_seconds + costs.allreduce_seconds_per_byte * bytes) / 2;
  }

  double step_seconds(ValueId value, const Step& step) const {
    const Halves halves = halves_of(step);
    const int count = halves.forward + (gradient_[at(value)] ? halves.backward : 0);
    double seconds = count * half_allreduce(bytes(value));
    // A part that is taken or put beside others is copied.
    if (step.from.is_split() || step.to.is_split())
      seconds += 2 * bytes(value) / options_.costs.bytes_per_second;
    return seconds;
  }

  double state_seconds(const program::State& state, const Layout& layout) const {
    const Costs& costs = options_.costs;
    const double all = bytes(state.value);
    const double mine = layout.is_split() ? all / options_.parts : all;
    double seconds = mine * costs.seconds_per_state_byte;
    if (!gradient_[at(state.value)]) return seconds;
    seconds += mine * costs.touched_per_byte / costs.bytes_per_second / costs.micro_batches;
    if (layout.kind == Layout::Kind::copied)
      seconds += all * costs.allreduce_seconds_per_byte / costs.micro_batches;
    return seconds;
  }

  double compute_seconds(const Op& op, const Strategy& strategy) const {
    const Costs& costs = options_.costs;
    const program::Work work = work_of(program_, op, symbols_);
    double seconds = 0;
    if (work.traffic_bytes > 0) {
      const double share = strategy.divided ? 1.0 / options_.parts : 1;
      double traffic = 0;
      const auto add = [&](ValueId value, const Layout& layout) {
        if (value != program::kNoValue && program_.value(value).kind == program::ValueKind::tensor)
          traffic += bytes(value) * (layout.is_split() ? share : 1);
      };
      const auto references = program::references(op);
      for (size_t i = 0; i < references.size(); ++i) add(references[i], strategy.inputs[i]);
      for (size_t i = 0; i < op.outputs.size(); ++i) add(op.outputs[i], strategy.outputs[i]);
      traffic = std::min(traffic, work.traffic_bytes);
      const double once =
          std::max(work.flops * share / costs.flops_per_second, traffic / costs.bytes_per_second);
      const bool back = !op.outputs.empty() && op.outputs.front() != program::kNoValue &&
                        gradient_[at(op.outputs.front())];
      seconds = costs.call_seconds + once * (back ? work.products > 0 ? 3 : 2 : 1);
    }
    if (strategy.exchanged_bytes > 0)
      seconds += 2 * half_allreduce(strategy.exchanged_bytes * static_cast<double>(costs.samples));
    return seconds;
  }

  // --- the step over an operation ---

  void advance(size_t number) {
    const Op& op = program_.ops[number];
    std::vector<Strategy> list = strategies(program_, op, rules_);
    if (divisible_.fixed[number]) list.resize(1);
    chosen_names_.emplace_back();
    for (const Strategy& strategy : list) chosen_names_.back().push_back(strategy.name);

    const std::vector<ValueId> references = program::references(op);
    const std::vector<ValueId> written = program::written_values(op);
    // New states of the frontier, in the order in which they come up.
    std::vector<ValueId> first_used;
    for (const ValueId value : references)
      if (state_of_[at(value)] >= 0 && place_[at(value)] < 0 &&
          std::ranges::count(first_used, value) == 0)
        first_used.push_back(value);
    std::vector<double> computing;
    for (const Strategy& strategy : list) computing.push_back(compute_seconds(op, strategy));

    std::vector<ValueId> after = frontier_;
    for (const ValueId value : first_used) {
      place_[at(value)] = static_cast<int>(after.size());
      after.push_back(value);
    }
    std::vector<Candidate> next;
    std::unordered_map<State, size_t, HashOfState> known;
    const std::vector<size_t> kept = kept_places(after, number);
    std::vector<ValueId> made;
    for (const ValueId output : op.outputs)
      if (output != program::kNoValue && last_use_[at(output)] > static_cast<int>(number))
        made.push_back(output);

    for (const Candidate& from : current_)
      for (size_t s = 0; s < list.size(); ++s) {
        State state = from.state;
        state.resize(after.size());
        double seconds = from.seconds + computing[s];
        if (!take_inputs(list[s], references, written, state, seconds)) continue;
        State reached;
        reached.reserve(kept.size() + made.size());
        for (const size_t place : kept) reached.push_back(state[place]);
        for (size_t o = 0; o < op.outputs.size(); ++o)
          if (std::ranges::count(made, op.outputs[o]) > 0) {
            const int layout = number_of(op.outputs[o], list[s].outputs[o]);
            reached.push_back({uint64_t{1} << layout, layout});
          }
        const auto [found, is_new] = known.try_emplace(std::move(reached), next.size());
        if (is_new) {
          nodes_.push_back({from.node, static_cast<int>(s)});
          next.push_back({found->first, seconds, static_cast<int>(nodes_.size()) - 1});
        } else if (seconds < next[found->second].seconds) {
          next[found->second].seconds = seconds;
          nodes_[at(next[found->second].node)] = {from.node, static_cast<int>(s)};
        }
      }
    if (next.empty())
      throw Error(ErrorCode::bug,
                  fmt::format("no way was found to divide {} ({})", op.target, op.module));
    if (next.size() > options_.most_states) {
      std::ranges::stable_sort(next, {}, &Candidate::seconds);
      next.resize(options_.most_states);
      exact_ = false;
    }
    current_ = std::move(next);

    for (const ValueId value : after) place_[at(value)] = -1;
    frontier_.clear();
    for (const size_t place : kept) frontier_.push_back(after[place]);
    frontier_.insert(frontier_.end(), made.begin(), made.end());
    for (size_t i = 0; i < frontier_.size(); ++i) place_[at(frontier_[i])] = static_cast<int>(i);
  }

  std::vector<size_t> kept_places(const std::vector<ValueId>& values, size_t op) const {
    std::vector<size_t> kept;
    for (size_t i = 0; i < values.size(); ++i)
      if (last_use_[at(values[i])] > static_cast<int>(op)) kept.push_back(i);
    return kept;
  }

  // False: it can't be done so.
  bool take_inputs(const Strategy& strategy, const std::vector<ValueId>& references,
                   const std::vector<ValueId>& written, State& state, double& seconds) {
    for (size_t i = 0; i < references.size(); ++i) {
      const ValueId value = references[i];
      const Layout& wanted = strategy.inputs[i];
      There& there = state[at(place_[at(value)])];
      if (there.layouts == 0) begin_state(value, wanted, there, seconds);
      if (std::ranges::count(written, value) > 0 &&
          there.layouts != uint64_t{1} << number_of(value, wanted))
        return false;
      for (const Step& step : way(available(value, there), wanted)) {
        seconds += step_seconds(value, step);
        there.layouts |= uint64_t{1} << number_of(value, step.to);
      }
    }
    return true;
  }

  void begin_state(ValueId value, const Layout& wanted, There& there, double& seconds) {
    const program::State& state = program_.state[at(state_of_[at(value)])];
    const Pin* pin = find_pin(options_.pins, state);
    const Layout layout = pin ? pin->layout : begin_of(wanted);
    const int number = number_of(value, layout);
    there = {uint64_t{1} << number, number};
    seconds += state_seconds(state, layout);
  }

  void finish() {
    for (Candidate& candidate : current_)
      for (const program::Port& output : program_.outputs) {
        if (place_[at(output.value)] < 0) continue;  // a state
        There& there = candidate.state[at(place_[at(output.value)])];
        for (const Step& step : way(available(output.value, there), kWhole))
          candidate.seconds += step_seconds(output.value, step);
      }
  }

  Divisible divisible_;
  const Program& program_;
  const SolveOptions& options_;
  RuleOptions rules_;
  program::SymbolValues symbols_;
  std::vector<bool> gradient_;
  std::vector<std::vector<Layout>> tables_;  // of each value, the layouts that came up
  std::vector<int> state_of_;                // of each value; -1: none
  std::vector<int> place_;                   // in the frontier; -1: none
  std::vector<int> last_use_;
  std::vector<ValueId> frontier_;
  std::vector<Candidate> current_;
  std::vector<Node> nodes_;
  std::vector<std::vector<std::string>> chosen_names_;  // of each op, its strategies
  bool exact_ = true;
};

}  // namespace

Solution solve(const Program& program, const SolveOptions& options) {
  if (options.parts <= 1) return {};
  return Solver(program, options).run();
}

}  // namespace renkei::shard
