// How a timeline lies in its files. Numbers are little endian, as on all machines that Renkei runs
// on; a changed layout gets another magic number.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>

namespace renkei::timeline::layout {

static_assert(std::endian::native == std::endian::little);

inline constexpr uint64_t kMagic = 0x31656d69746b6e72;  // "rnktime1"
inline constexpr size_t kHostBytes = 128, kNameBytes = 48, kMostNames = 1200;

struct Slice {
  double begin, end;
  int64_t step, bytes;
  int32_t stage, index, peer, peer_stage;
  uint16_t name;
  uint8_t category, lane;
  uint8_t unused[12];
};
static_assert(sizeof(Slice) == 64);

struct Offset {
  double at, seconds, error;
};

struct Now {
  double entered, left;
  int64_t step;
  int32_t stage, index, peer, name;
};

struct Header {
  uint64_t magic;
  int32_t rank, ranks;
  double origin, wall_seconds;
  Offset first, last;
  int64_t most_events;
  std::atomic<int64_t> written;  // counts on; slice i lies at i modulo most_events
  std::atomic<int32_t> names;
  int32_t predicted;
  std::atomic<int32_t> finished;
  int32_t unused;
  Now now;
  char host[kHostBytes];
  char name[kMostNames][kNameBytes];
};
inline constexpr size_t kHeaderBytes = 65536;
static_assert(sizeof(Header) <= kHeaderBytes);
static_assert(std::atomic<int64_t>::is_always_lock_free);

struct Step {
  uint64_t number;  // step + 1: 0 is room that was not used yet
  double begin, seconds;
  double by_category[9];
  double hidden_communication;
  int64_t samples, memory_bytes, unused;
};
static_assert(sizeof(Step) == 128);

}  // namespace renkei::timeline::layout
