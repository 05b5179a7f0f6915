#include "check/links.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "check/outliers.h"
#include "comm/collectives/exchange.h"
#include "comm/collectives/gather.h"

namespace renkei::check {
namespace {

constexpr comm::Call kCall{.operation = "check of the links"};
constexpr int kPings = 21;
constexpr size_t kProbeBytes = 64 << 10, kLeastBytes = 256 << 10, kMostBytes = 8 << 20;

void sleep_until_done(comm::Transport& transport, comm::Request& request) {
  while (!transport.done(request)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  transport.wait(request, kCall);
}

// One side asks, the other sends the same back; the size was said before.
class LinkProbe {
 public:
  LinkProbe(comm::Transport& transport, int peer)
      : transport_(transport), peer_(peer), bytes_(kMostBytes) {}

  Link ask(double seconds) {
    Link link{transport_.rank(), peer_};
    std::vector<double> pings;
    for (int i = 0; i < kPings; ++i) pings.push_back(trip(8));
    link.latency_seconds = median(pings);
    // Long enough that buffers of the network do not count: some messages over the time we have.
    trip(kProbeBytes);
    const double probe = trip(kProbeBytes) / kProbeBytes;
    const auto size = std::clamp(static_cast<size_t>(seconds / 8 / probe), kLeastBytes, kMostBytes);
    double best = 1e300;
    const double end = transport_.clock().seconds() + seconds;
    do best = std::min(best, trip(size));
    while (transport_.clock().seconds() < end);
    link.bytes_per_second = static_cast<double>(size) / best;
    say(0);
    return link;
  }

  void answer() {
    while (const uint64_t size = hear()) {
      const auto bytes = std::span(bytes_).first(size);
      comm::receive_and_wait(transport_, peer_, bytes, comm::Tag::link_check, kCall);
      comm::send_and_wait(transport_, peer_, bytes, comm::Tag::link_check, kCall);
    }
  }

 private:
  double trip(size_t size) {
    say(size);
    const auto bytes = std::span(bytes_).first(size);
    const double begin = transport_.clock().seconds();
    comm::send_and_wait(transport_, peer_, bytes, comm::Tag::link_check, kCall);
    comm::receive_and_wait(transport_, peer_, bytes, comm::Tag::link_check, kCall);
    return (transport_.clock().seconds() - begin) / 2;
  }
  void say(uint64_t size) {
    comm::send_and_wait(transport_, peer_, std::as_bytes(std::span(&size, 1)),
                        comm::Tag::link_check, kCall);
  }
  uint64_t hear() {
    uint64_t size = 0;
    comm::receive_and_wait(transport_, peer_, std::as_writable_bytes(std::span(&size, 1)),
                           comm::Tag::link_check, kCall);
    return size;
  }

  comm::Transport& transport_;
  int peer_;
  std::vector<std::byte> bytes_;
};

}  // namespace

std::vector<std::vector<std::pair<int, int>>> conflict_free_rounds(int n) {
  const int places = n + n % 2;  // an odd one out pauses
  std::vector<int> order(static_cast<size_t>(places));
  for (int i = 0; i < places; ++i) order[static_cast<size_t>(i)] = i;
  std::vector<std::vector<std::pair<int, int>>> rounds;
  for (int round = 0; round + 1 < places; ++round) {
    auto& pairs = rounds.emplace_back();
    for (int i = 0; i < places / 2; ++i) {
      const int a = order[static_cast<size_t>(i)], b = order[static_cast<size_t>(places - 1 - i)];
      if (a < n && b < n) pairs.emplace_back(std::min(a, b), std::max(a, b));
    }
    std::rotate(order.begin() + 1, order.end() - 1, order.end());
  }
  return rounds;
}

void quiet_barrier(comm::Transport& transport) {
  std::byte token{};
  const std::span<std::byte> bytes(&token, 1);
  const int tag = static_cast<int>(comm::Tag::link_check);
  if (transport.rank() != 0) {
    comm::send_and_wait(transport, 0, bytes, comm::Tag::link_check, kCall);
    auto request = transport.receive(0, bytes, tag);
    sleep_until_done(transport, request);
    return;
  }
  for (int rank = 1; rank < transport.size(); ++rank) {
    auto request = transport.receive(rank, bytes, tag);
    sleep_until_done(transport, request);
  }
  for (int rank = 1; rank < transport.size(); ++rank)
    comm::send_and_wait(transport, rank, bytes, comm::Tag::link_check, kCall);
}

std::vector<Link> measure_links(comm::Transport& transport, const std::vector<int>& ranks,
                                double seconds_per_link) {
  std::vector<Link> mine;
  for (const auto& round : conflict_free_rounds(static_cast<int>(ranks.size()))) {
    quiet_barrier(transport);
    for (const auto& [i, j] : round) {
      const int a = ranks[static_cast<size_t>(i)], b = ranks[static_cast<size_t>(j)];
      if (transport.rank() == a) mine.push_back(LinkProbe(transport, b).ask(seconds_per_link));
      if (transport.rank() == b) LinkProbe(transport, a).answer();
    }
  }
  quiet_barrier(transport);
  const std::string text(reinterpret_cast<const char*>(mine.data()), mine.size() * sizeof(Link));
  std::vector<Link> all;
  for (const std::string& part : comm::gather_texts(transport, text, kCall)) {
    for (size_t at = 0; at < part.size(); at += sizeof(Link))
      std::memcpy(&all.emplace_back(), part.data() + at, sizeof(Link));
  }
  return all;
}

}  // namespace renkei::check
