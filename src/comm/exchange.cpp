#include "comm/exchange.h"

#include <algorithm>
#include <memory>

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

std::vector<Buffer> segments_of(Buffer buffer, size_t segment_bytes) {
  if (segment_bytes == 0) segment_bytes = kDefaultSegmentBytes;
  const size_t elements = std::max<size_t>(1, segment_bytes / size_of(buffer.dtype));
  std::vector<Buffer> segments;
  for (size_t first = 0; first < buffer.count; first += elements)
    segments.push_back(buffer.part(first, std::min(elements, buffer.count - first)));
  return segments;
}

void exchange_and_reduce(Transport& transport, int peer, Buffer outgoing, Buffer into,
                         Reduction reduction, size_t segment_bytes, Tag tag, const Call& call) {
  const std::vector<Buffer> arriving = segments_of(into, segment_bytes);
  const size_t window = std::min(kReceiveWindow, arriving.size());
  const size_t slot_bytes = arriving.empty() ? 0 : arriving[0].bytes();
  const auto scratch = std::make_unique_for_overwrite<std::byte[]>(window * slot_bytes);
  const auto slot = [&](size_t k) {
    return Buffer(scratch.get() + k % window * slot_bytes, arriving[k].count, into.dtype);
  };
  std::vector<Request> receiving(arriving.size());
  const auto post = [&](size_t k) {
    receiving[k] = transport.receive(peer, slot(k).span(), static_cast<int>(tag));
  };
  for (size_t k = 0; k < window; ++k) post(k);
  std::vector<Request> sending;
  for (const Buffer& segment : segments_of(outgoing, segment_bytes))
    sending.push_back(transport.send(peer, segment.span(), static_cast<int>(tag)));
  for (size_t k = 0; k < arriving.size(); ++k) {
    transport.wait(receiving[k], call);
    reduce(arriving[k], slot(k), reduction);
    if (k + window < arriving.size()) post(k + window);
  }
  for (Request& request : sending) transport.wait(request, call);
}

void finish_mean(Buffer sum, Reduction reduction, int ranks) {
  if (reduction == Reduction::mean && ranks > 1) scale(sum, 1.0 / ranks);
}

}  // namespace renkei::comm
