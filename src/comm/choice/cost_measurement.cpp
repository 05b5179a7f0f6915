// Rank 0 plays ping-pong with the first other rank of its host (the link inside) and with the first
// rank of another host (the link between), while all others wait for the result. A link without
// such a peer is taken to be like the other one. Medians: a minimum would promise what ranks that
// share cores never get, and a mean would count the one time that the system looked away.
#include "comm/choice/cost_measurement.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "comm/collectives/broadcast.h"
#include "comm/collectives/exchange.h"

namespace renkei::comm {
namespace {

constexpr size_t kSmall = 8, kLarge = 512 * 1024;
constexpr int kSmallRounds = 30, kLargeRounds = 6;
constexpr double kSecondsPerSize = 0.06;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// A ping is announced by its size, because only rank 0 looks at the clock; 0 is the end.
class PingPong {
 public:
  PingPong(Transport& transport, int peer, const Call& call)
      : transport_(transport), peer_(peer), call_(call), bytes_(kLarge) {}

  double seconds(size_t bytes) {
    announce(bytes);
    const double begin = transport_.clock().seconds();
    send_and_wait(transport_, peer_, std::span(bytes_).first(bytes), Tag::measurement, call_);
    receive_and_wait(transport_, peer_, std::span(bytes_).first(bytes), Tag::measurement, call_);
    return (transport_.clock().seconds() - begin) / 2;
  }
  double median_seconds(size_t bytes, int rounds) {
    seconds(bytes);  // warm: the first one sets up connections and memory
    std::vector<double> times;
    const double end = transport_.clock().seconds() + kSecondsPerSize;
    do times.push_back(seconds(bytes));
    while (static_cast<int>(times.size()) < rounds && transport_.clock().seconds() < end);
    return median(times);
  }
  void end() { announce(0); }

  void answer() {
    while (true) {
      uint64_t size = 0;
      receive_and_wait(transport_, peer_, std::as_writable_bytes(std::span(&size, 1)),
                       Tag::measurement, call_);
      if (size == 0) return;
      const auto bytes = std::span(bytes_).first(size);
      receive_and_wait(transport_, peer_, bytes, Tag::measurement, call_);
      send_and_wait(transport_, peer_, bytes, Tag::measurement, call_);
    }
  }

 private:
  void announce(uint64_t size) {
    send_and_wait(transport_, peer_, std::as_bytes(std::span(&size, 1)), Tag::measurement, call_);
  }
  Transport& transport_;
  int peer_;
  const Call& call_;
  std::vector<std::byte> bytes_;
};

std::optional<LinkCost> measure_link(Transport& transport, std::optional<int> peer,
                                     const Call& call) {
  if (!peer) return std::nullopt;
  if (transport.rank() == *peer) PingPong(transport, 0, call).answer();
  if (transport.rank() != 0) return std::nullopt;
  PingPong ping_pong(transport, *peer, call);
  const double latency = ping_pong.median_seconds(kSmall, kSmallRounds);
  const double large = ping_pong.median_seconds(kLarge, kLargeRounds);
  ping_pong.end();
  const double per_byte = std::max(large - latency, 1e-9) / static_cast<double>(kLarge);
  return LinkCost{latency, 1 / per_byte};
}

double measure_reduction(const Clock& clock) {
  std::vector<float> into(kLarge / sizeof(float)), from(into.size(), 1);
  std::vector<double> times;
  for (int round = 0; round < 6; ++round) {
    const double begin = clock.seconds();
    reduce(std::span(into), std::span(from), Reduction::sum);
    times.push_back(clock.seconds() - begin);
  }
  return static_cast<double>(kLarge) / std::max(median(times), 1e-9);
}

}  // namespace

CostModel cost_model_for(const Transport& transport, CostModel model) {
  model.even = true;
  model.ranks = transport.size();
  std::map<std::string_view, int> ranks_on;
  for (int rank = 0; rank < model.ranks; ++rank) ++ranks_on[transport.host(rank)];
  model.hosts = static_cast<int>(ranks_on.size());
  for (const auto& [host, ranks] : ranks_on) model.even &= ranks == ranks_on.begin()->second;
  return model;
}

CostModel measure_cost_model(Transport& transport, const Call& call) {
  const Call named = with_name(call, "measurement of the links");
  CostModel model = cost_model_for(transport);
  std::optional<int> local, remote;
  for (int rank = transport.size() - 1; rank > 0; --rank)
    (transport.host(rank) == transport.host(0) ? local : remote) = rank;
  const auto inside = measure_link(transport, local, named);
  const auto between = measure_link(transport, remote, named);
  if (transport.rank() == 0) {
    model.inside = inside.value_or(between.value_or(model.inside));
    model.between = between.value_or(model.inside);
    model.reduce_bytes_per_second = measure_reduction(transport.clock());
  }
  std::array<double, 5> values = {model.inside.latency_seconds, model.inside.bytes_per_second,
                                  model.between.latency_seconds, model.between.bytes_per_second,
                                  model.reduce_bytes_per_second};
  broadcast(transport, std::span<double>(values), 0, named);
  model.inside = {values[0], values[1]};
  model.between = {values[2], values[3]};
  model.reduce_bytes_per_second = values[4];
  return model;
}

}  // namespace renkei::comm
