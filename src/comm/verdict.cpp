#include "comm/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "comm/transport/tags.h"

namespace renkei::comm {
namespace {

// What a rank tells the others: plain bytes.
struct State {
  int64_t sequence = -1;
  int64_t step = -1;
  char operation[48] = {};
};

State state_of(const FlightRecorder& recorder) {
  const OperationRecord last = recorder.last();
  State state{.sequence = last.sequence, .step = last.step};
  std::memcpy(state.operation, last.operation.data(),
              std::min(last.operation.size(), sizeof state.operation - 1));
  return state;
}

std::span<std::byte> bytes_of(State& state) {
  return {reinterpret_cast<std::byte*>(&state), sizeof state};
}

// The states of the ranks that answered.
std::vector<std::optional<State>> exchange_states(Transport& transport, State mine,
                                                  double window_seconds) {
  const int n = transport.size();
  std::vector<State> heard(static_cast<size_t>(n));
  std::vector<Request> sends, receives;
  for (int rank = 0; rank < n; ++rank) {
    const auto r = static_cast<size_t>(rank);
    receives.push_back(rank == transport.rank()
                           ? Request()
                           : transport.receive(rank, bytes_of(heard[r]), kVerdictTag));
    sends.push_back(rank == transport.rank() ? Request()
                                             : transport.send(rank, bytes_of(mine), kVerdictTag));
  }
  std::vector<std::optional<State>> states(static_cast<size_t>(n));
  const double end = transport.clock().seconds() + window_seconds;
  for (int rank = 0; rank < n; ++rank) {
    const auto r = static_cast<size_t>(rank);
    if (rank == transport.rank()) {
      states[r] = mine;
      continue;
    }
    try {
      transport.wait(receives[r],
                     {.operation = "verdict",
                      .timeout_seconds = std::max(0.01, end - transport.clock().seconds())});
      states[r] = heard[r];
    } catch (const Error&) {
      // No answer is an answer.
    }
  }
  return states;
}

std::string describe(const State& state) {
  return fmt::format("{} (operation #{}{})", state.operation, state.sequence,
                     state.step >= 0 ? fmt::format(", step {}", state.step) : "");
}

}  // namespace

Error find_culprit(Transport& transport, const FlightRecorder& recorder, const Error& timeout,
                   double window_seconds) {
  const State mine = state_of(recorder);
  const auto states = exchange_states(transport, mine, window_seconds);

  State furthest = mine;
  for (const auto& state : states)
    if (state && state->sequence > furthest.sequence) furthest = *state;
  const auto answers = [](const std::optional<State>& state) { return state.has_value(); };
  const auto silent = std::ranges::find_if_not(states, answers);
  const auto behind = std::ranges::find_if(states, [&](const std::optional<State>& state) {
    return state && state->sequence < furthest.sequence;
  });
  const bool is_silent = silent != states.end();
  if (!is_silent && behind == states.end()) return timeout;

  const auto culprit = static_cast<int>((is_silent ? silent : behind) - states.begin());
  const std::string excuse =
      is_silent ? "it does not answer" : fmt::format("it is still in {}", describe(**behind));
  Error error(ErrorCode::communication,
              fmt::format("{} has not come to {}: {}", name_of_rank(transport, culprit),
                          describe(furthest), excuse),
              timeout.hint);
  error.rank = transport.job_rank(culprit);
  error.host = transport.host(culprit);
  if (furthest.step >= 0) error.step = furthest.step;
  return error;
}

}  // namespace renkei::comm
