#include "bench/contest.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/clock.h"
#include "timeline/recorder.h"

namespace renkei::bench {
namespace {

using comm::Buffer;
using comm::Call;
using comm::Communicator;
using comm::Reduction;

// A round lasts about this long, so that the clock and one odd interruption do not decide it.
constexpr double kRoundSeconds = 12e-3;
constexpr int kMostRepetitions = 2000;

double slowest(Communicator& communicator, double seconds, const Call& call) {
  communicator.allreduce(Buffer(std::span(&seconds, 1)), Reduction::max, call);
  return seconds;
}

// Keeps this thread on a core of its own as long as it lives, where each rank of the host can have
// one: a rank that wakes on the core of another stays there for as long as a round takes. The
// library's other threads are left where they are.
class OwnCore {
 public:
  explicit OwnCore(const comm::Transport& transport) {
    CPU_ZERO(&before_);
    const auto ranks = local_ranks(transport);
    if (ranks.size() < 2 || sched_getaffinity(0, sizeof(before_), &before_) != 0) return;
    if (CPU_COUNT(&before_) < static_cast<int>(ranks.size())) return;
    auto ranks_before = std::ranges::find(ranks, transport.rank()) - ranks.begin();
    cpu_set_t mine;
    CPU_ZERO(&mine);
    for (size_t core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &before_) && ranks_before-- == 0) CPU_SET(core, &mine);
    bound_ = sched_setaffinity(0, sizeof(mine), &mine) == 0;
  }
  ~OwnCore() {
    if (bound_) sched_setaffinity(0, sizeof(before_), &before_);
  }
  OwnCore(const OwnCore&) = delete;
  OwnCore& operator=(const OwnCore&) = delete;

 private:
  cpu_set_t before_;
  bool bound_ = false;
};

// Seconds of one repetition; that of the slowest rank. The contestant before may have left threads
// that are still busy and caches full of its own, so each begins with a pause and a few runs for
// itself.
double time_once(Communicator& communicator, const Contestant& contestant, int repetitions,
                 const Call& call) {
  std::this_thread::sleep_for(std::chrono::milliseconds(3));
  for (int i = 0; i < std::clamp(repetitions / 4, 1, 20); ++i) contestant.run();
  communicator.barrier(call);
  const double begin = now_seconds();
  for (int i = 0; i < repetitions; ++i) contestant.run();
  return slowest(communicator, now_seconds() - begin, call) / repetitions;
}

}  // namespace

double Contestant::quantile_us(double q) const {
  return timeline::quantile(seconds, q) * 1e6;
}

void time_interleaved(Communicator& communicator, std::vector<Contestant>& contestants, int rounds,
                      const Call& call) {
  const OwnCore own_core(communicator.transport());
  std::vector<int> repetitions;
  for (const Contestant& contestant : contestants) {
    time_once(communicator, contestant, 1, call);  // warm up
    const double estimate = std::max(time_once(communicator, contestant, 2, call), 1e-9);
    repetitions.push_back(
        static_cast<int>(std::clamp(kRoundSeconds / estimate, 1.0, double{kMostRepetitions})));
  }
  for (int round = 0; round < rounds; ++round)
    for (size_t c = 0; c < contestants.size(); ++c)
      contestants[c].seconds.push_back(
          time_once(communicator, contestants[c], repetitions[c], call));
}

}  // namespace renkei::bench
