#include "comm/clock_offset.h"

#include "comm/transport/tags.h"

namespace renkei::comm {
namespace {

constexpr int kTag = static_cast<int>(Tag::clock);

std::span<std::byte> bytes_of(double& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

void send(Transport& transport, int to, double value, const Call& call) {
  Request request = transport.send(to, bytes_of(value), kTag);
  transport.wait(request, call);
}

double receive(Transport& transport, int from, const Call& call) {
  double value = 0;
  Request request = transport.receive(from, bytes_of(value), kTag);
  transport.wait(request, call);
  return value;
}

}  // namespace

ClockDifference clock_difference(Transport& transport, const Clock& clock, const Call& call,
                                 int exchanges) {
  if (transport.rank() == 0) {
    for (int rank = 1; rank < transport.size(); ++rank) {
      if (transport.host(rank) == transport.host(0)) continue;
      for (int i = 0; i < exchanges; ++i) {
        receive(transport, rank, call);
        send(transport, rank, clock.seconds(), call);
      }
    }
    return {};
  }
  if (transport.host(transport.rank()) == transport.host(0)) return {};
  ClockDifference best{.seconds = 0, .error = -1};
  for (int i = 0; i < exchanges; ++i) {
    const double asked = clock.seconds();
    send(transport, 0, asked, call);
    const double there = receive(transport, 0, call);
    const double answered = clock.seconds();
    const double error = (answered - asked) / 2;
    if (best.error >= 0 && best.error <= error) continue;
    best = {.seconds = there - (asked + answered) / 2, .error = error};
  }
  return best;
}

}  // namespace renkei::comm
