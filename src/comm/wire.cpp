#include "comm/wire.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "comm/exchange.h"

namespace renkei::comm {
namespace {

// In front of a message's values; 8 bytes keep them aligned.
struct Preamble {
  int32_t exponent = 0;
  int32_t unused = 0;
};

class WirePayload : public RingPayload {
 public:
  WirePayload(const std::vector<Buffer>& chunks, Reduction reduction, DType wire,
              size_t segment_bytes)
      : reduction_(reduction), wire_(wire), ranks_(static_cast<int>(chunks.size())) {
    size_t largest = 0, all_bytes = 0;
    for (const Buffer& chunk : chunks) {
      segments_.emplace_back();
      for (const Buffer& values : segments_of(chunk, segment_bytes)) {
        segments_.back().push_back({values, all_bytes});
        all_bytes += (message_bytes(values) + 7) / 8 * 8;
        largest = std::max(largest, values.count);
      }
    }
    messages_ = std::make_unique_for_overwrite<std::byte[]>(all_bytes);
    scratch_ = std::make_unique_for_overwrite<float[]>(largest);
  }

  size_t segments(int c) const override { return segments_[static_cast<size_t>(c)].size(); }
  std::span<std::byte> message(int c, size_t g) override {
    return {messages_.get() + at(c, g).offset, message_bytes(at(c, g).values)};
  }
  void before_send(int c, size_t g) override {
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
  Buffer scratch(size_t count) { return std::span<float>(scratch_.get(), count); }
  Buffer narrow(std::span<std::byte> message) const {
    return {message.data() + sizeof(Preamble), (message.size() - sizeof(Preamble)) / 2, wire_};
  }
  void decode(Buffer into, std::span<std::byte> message) const {
    Preamble preamble;
    std::memcpy(&preamble, message.data(), sizeof preamble);
    convert(into, narrow(message));
    if (preamble.exponent != 0) scale(into, std::ldexp(1.0, -preamble.exponent));
  }

  Reduction reduction_;
  DType wire_;
  int ranks_;
  std::vector<std::vector<Segment>> segments_;  // by place
  std::unique_ptr<std::byte[]> messages_;
  std::unique_ptr<float[]> scratch_;
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
  WirePayload payload(chunks_by_place(buffer, order), reduction, wire, options.segment_bytes);
  run_ring(transport, payload, order, {0, 2 * transport.size() - 2}, call);
}

}  // namespace renkei::comm
