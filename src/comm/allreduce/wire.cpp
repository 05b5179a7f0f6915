#include "comm/allreduce/wire.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "comm/buffer/scratch.h"
#include "comm/collectives/exchange.h"

namespace renkei::comm {
namespace {

// In front of a message's values; 8 bytes keep them aligned.
struct Preamble {
  int32_t exponent = 0;
  int32_t unused = 0;
};

class WirePayload : public RingPayload {
 public:
  WirePayload(Buffer buffer, const std::vector<Buffer>& chunks, Reduction reduction, DType wire,
              size_t segment_bytes)
      : reduction_(reduction),
        wire_(wire),
        ranks_(static_cast<int>(chunks.size())),
        has_data_(buffer.data != nullptr) {
    size_t largest = 0, all_bytes = 0;
    for (const Buffer& chunk : chunks) {
      const Segments cut(chunk, segment_bytes);
      segments_.emplace_back();
      for (size_t g = 0; g < cut.size(); ++g) {
        segments_.back().push_back({cut[g], all_bytes});
        all_bytes += (message_bytes(cut[g]) + 7) / 8 * 8;
      }
      largest = std::max(largest, cut.bytes());
    }
    messages_ = Scratch(buffer, all_bytes);
    scratch_ = Scratch(buffer, largest);
  }

  size_t segments(int c) const override { return segments_[static_cast<size_t>(c)].size(); }
  std::span<std::byte> message(int c, size_t g) override {
    return messages_.span(at(c, g).offset, message_bytes(at(c, g).values));
  }
  void before_send(int c, size_t g) override {
    if (!has_data_) return;
    const Buffer values = at(c, g).values;
    const std::span<std::byte> message = this->message(c, g);
    Preamble preamble;
    Buffer scaled = values;
    if (wire_ == DType::f16)
      preamble.exponent = wire_exponent({reinterpret_cast<float*>(values.data), values.count});
    if (preamble.exponent != 0) {
      scaled = scratch(values.count);
      std::memcpy(scaled.data, values.data, values.bytes());
      scale(scaled, std::ldexp(1.0, preamble.exponent));
    }
    std::memcpy(message.data(), &preamble, sizeof preamble);
    convert(narrow(message), scaled);
  }
  void reduce_arrival(int c, size_t g, std::span<std::byte> arrived) override {
    const Buffer values = at(c, g).values;
    decode(scratch(values.count), arrived);
    reduce(values, scratch(values.count), reduction_);
  }
  void complete(int c, size_t g) override {
    finish_mean(at(c, g).values, reduction_, ranks_);
    before_send(c, g);
    decode(at(c, g).values, message(c, g));
  }
  void after_receive(int c, size_t g) override { decode(at(c, g).values, message(c, g)); }

 private:
  struct Segment {
    Buffer values;
    size_t offset;  // of its message
  };
  static size_t message_bytes(Buffer values) { return sizeof(Preamble) + values.count * 2; }
  const Segment& at(int c, size_t g) const { return segments_[static_cast<size_t>(c)][g]; }
  Buffer scratch(size_t count) const { return scratch_.buffer(0, count, DType::f32); }
  Buffer narrow(std::span<std::byte> message) const {
    return {message.data() + sizeof(Preamble), (message.size() - sizeof(Preamble)) / 2, wire_};
  }
  void decode(Buffer into, std::span<std::byte> message) const {
    if (!has_data_) return;
    Preamble preamble;
    std::memcpy(&preamble, message.data(), sizeof preamble);
    convert(into, narrow(message));
    if (preamble.exponent != 0) scale(into, std::ldexp(1.0, -preamble.exponent));
  }

  Reduction reduction_;
  DType wire_;
  int ranks_;
  bool has_data_;
  std::vector<std::vector<Segment>> segments_;  // by place
  Scratch messages_, scratch_;
};

}  // namespace

int wire_exponent(std::span<const float> segment) {
  // The magnitudes of floats are ordered as their bits are, which compare faster.
  constexpr uint32_t kMagnitude = 0x7FFFFFFF, kInfinity = 0x7F800000;
  uint32_t largest = 0;
  for (const float value : segment) {
    const uint32_t bits = std::bit_cast<uint32_t>(value) & kMagnitude;
    largest = std::max(largest, bits < kInfinity ? bits : 0);
  }
  if (largest == 0) return 0;
  // 2^e and 2^-e must be normal floats.
  return std::clamp(14 - std::ilogb(std::bit_cast<float>(largest)), -126, 126);
}

void wire_ring_allreduce(Transport& transport, Buffer buffer, Reduction reduction, DType wire,
                         const Call& call, const RingOptions& options) {
  if (buffer.dtype != DType::f32 || (wire != DType::f16 && wire != DType::bf16))
    throw Error(ErrorCode::usage,
                fmt::format("{} cannot travel as {}", name_of(buffer.dtype), name_of(wire)),
                "f32 can travel as f16 or bf16");
  const std::vector<int> order = checked_order(options.order, transport.size());
  WirePayload payload(buffer, chunks_by_place(buffer, order), reduction, wire,
                      options.segment_bytes);
  run_ring(transport, payload, order, {0, 2 * transport.size() - 2}, call);
}

}  // namespace renkei::comm
