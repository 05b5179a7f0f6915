#include "comm/collectives/exchange.h"

#include <vector>

#include "comm/buffer/scratch.h"

namespace renkei::comm {

Call with_name(Call call, std::string_view name) {
  if (call.operation == Call{}.operation) call.operation = name;
  return call;
}

void send_and_wait(Transport& transport, int to, std::span<const std::byte> bytes, Tag tag,
                   const Call& call) {
  Request sending = transport.send(to, bytes, static_cast<int>(tag));
  transport.wait(sending, call);
}

void receive_and_wait(Transport& transport, int from, std::span<std::byte> bytes, Tag tag,
                      const Call& call) {
  Request receiving = transport.receive(from, bytes, static_cast<int>(tag));
  transport.wait(receiving, call);
}

void exchange(Transport& transport, int to, std::span<const std::byte> outgoing, int from,
              std::span<std::byte> incoming, Tag tag, const Call& call) {
  Request receiving = transport.receive(from, incoming, static_cast<int>(tag));
  Request sending = transport.send(to, outgoing, static_cast<int>(tag));
  transport.wait(receiving, call);
  transport.wait(sending, call);
}

Segments::Segments(Buffer buffer, size_t segment_bytes) : buffer_(buffer) {
  if (segment_bytes == 0) segment_bytes = kDefaultSegmentBytes;
  elements_ = std::max<size_t>(1, segment_bytes / size_of(buffer.dtype));
}

void exchange_and_reduce(Transport& transport, int peer, Buffer outgoing, Buffer into,
                         Reduction reduction, size_t segment_bytes, Tag tag, const Call& call) {
  const Segments arriving(into, segment_bytes), leaving(outgoing, segment_bytes);
  const size_t window = std::min(kReceiveWindow, arriving.size());
  const Scratch scratch(into, window * arriving.bytes());
  const auto slot = [&](size_t k) {
    return scratch.buffer(k % window * arriving.bytes(), arriving[k].count, into.dtype);
  };
  std::vector<Request> receiving(window);
  const auto post = [&](size_t k) {
    receiving[k % window] = transport.receive(peer, slot(k).span(), static_cast<int>(tag));
  };
  for (size_t k = 0; k < window; ++k) post(k);
  std::vector<Request> sending;
  for (size_t k = 0; k < leaving.size(); ++k)
    sending.push_back(transport.send(peer, leaving[k].span(), static_cast<int>(tag)));
  for (size_t k = 0; k < arriving.size(); ++k) {
    transport.wait(receiving[k % window], call);
    reduce(arriving[k], slot(k), reduction);
    if (k + window < arriving.size()) post(k + window);
  }
  for (Request& request : sending) transport.wait(request, call);
}

void finish_mean(Buffer sum, Reduction reduction, int ranks) {
  if (reduction == Reduction::mean && ranks > 1) scale(sum, 1.0 / ranks);
}

}  // namespace renkei::comm
