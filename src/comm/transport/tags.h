// Who sends under which tag. Two parts of the program that use the same tag between the same ranks
// would receive each other's messages, so all tags are here. MPI promises 0 to 32767.
//
//          0 … 8191    point-to-point messages of a transport's user, 32 tags for each of 256
//          channels
//       8192 … 16383   point-to-point messages of the job, by name below
//      16384 … 24575   collectives, 32 tags for each channel
//
// A channel keeps the messages of a SubTransport apart from those of its parent: channel c adds 32
// c to every tag. Views of views add up. Collectives make views of their own on channels 1 to 7, so
// whoever else makes views takes channels 8 apart; channel 0 is the job's own.
#pragma once

#include <array>
#include <cstddef>

namespace renkei::comm {

struct TagRange {
  int first;
  int count;
  constexpr int end() const { return first + count; }
  constexpr bool overlaps(TagRange other) const {
    return first < other.end() && other.first < end();
  }
};

constexpr TagRange kAllTags{0, 32768};
constexpr int kTagsPerChannel = 32, kChannels = 256;

// For users of any transport, views too. A verdict (verdict.h) must not meet anything else.
constexpr int kVerdictTag = 1;

constexpr TagRange kUserTags{0, kChannels* kTagsPerChannel};
constexpr TagRange kMessageCacheTags{8192, 4};
constexpr TagRange kStateTags{8196, 1};  // parameters and buffers to rank 0
constexpr TagRange kCallTags{8197, 3};  // inputs, outputs and gradients of a network that is called
constexpr TagRange kStageLinkTags{8200, 8184};  // four for each border between stages
constexpr TagRange kCollectiveTags{16384, kChannels* kTagsPerChannel};

// A tag per collective means that ranks which call different ones time out with both names instead
// of mixing their bytes.
enum class Tag : int {
  barrier = kCollectiveTags.first,
  broadcast,
  all_gather,
  reduce_scatter,
  reference,
  agreement,
  ring,
  halving_doubling,
  tree,
  all_to_all,
  reproducible,
  measurement,
  gather,
  share,
  clock,
  link_check,
  end,  // none: how many there are
};

namespace channels {
constexpr int kStride = 8;  // below it, those of the collectives:
constexpr int kTorusRow = 1, kTorusColumn = 2, kInsideHost = 3, kBetweenHosts = 4;
// A hierarchical allreduce may have a torus inside.
constexpr int kLastOfCollectives = kBetweenHosts + kTorusColumn;

constexpr int kStaging = 1 * kStride;
// The i-th group of ranks that train together: replicas of a stage, ranks with tied parameters, a
// process group of the program. Whoever makes some asks for free numbers (free_groups.h).
constexpr int kMostGroups = kChannels / kStride - 3;
constexpr int group(int i) {
  return (2 + i) * kStride;
}
// Collectives that a thread of the Python module does beside everything else.
constexpr int kQueue = group(kMostGroups);
}  // namespace channels

namespace checks {
constexpr std::array kRanges{kUserTags, kMessageCacheTags, kStateTags,
                             kCallTags, kStageLinkTags,    kCollectiveTags};
constexpr bool apart() {
  for (size_t i = 0; i < kRanges.size(); ++i) {
    if (kRanges[i].first < kAllTags.first || kRanges[i].end() > kAllTags.end()) return false;
    for (size_t j = 0; j < i; ++j)
      if (kRanges[i].overlaps(kRanges[j])) return false;
  }
  return true;
}
static_assert(apart(), "two ranges of tags overlap, or one leaves what MPI promises");
static_assert(static_cast<int>(Tag::end) <= kCollectiveTags.first + kTagsPerChannel);
static_assert(kVerdictTag < kTagsPerChannel);
static_assert(channels::kLastOfCollectives < channels::kStride);
static_assert(channels::kQueue + channels::kLastOfCollectives < kChannels);
}  // namespace checks

}  // namespace renkei::comm
