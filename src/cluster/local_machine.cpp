// The best of a few short runs counts: whatever disturbs a run makes it slower, never faster.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cluster/local_machine.cpp"
#include <hwy/foreach_target.h>
// Must come after foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace renkei::cluster {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Independent chains hide the latency of a multiply-add. Returns the operations done; `sink` keeps
// the compiler from leaving them out.
double multiply_adds(int rounds, float* sink) {
  const hn::ScalableTag<float> d;
  const auto a = hn::Set(d, 0.999f), b = hn::Set(d, 0.001f);
  auto x0 = hn::Zero(d), x1 = x0, x2 = x0, x3 = x0, x4 = x0, x5 = x0, x6 = x0, x7 = x0, x8 = x0,
       x9 = x0;
  for (int round = 0; round < rounds; ++round) {
    x0 = hn::MulAdd(x0, a, b);
    x1 = hn::MulAdd(x1, a, b);
    x2 = hn::MulAdd(x2, a, b);
    x3 = hn::MulAdd(x3, a, b);
    x4 = hn::MulAdd(x4, a, b);
    x5 = hn::MulAdd(x5, a, b);
    x6 = hn::MulAdd(x6, a, b);
    x7 = hn::MulAdd(x7, a, b);
    x8 = hn::MulAdd(x8, a, b);
    x9 = hn::MulAdd(x9, a, b);
  }
  x0 = hn::Add(hn::Add(hn::Add(x0, x1), hn::Add(x2, x3)), hn::Add(hn::Add(x4, x5), x6));
  *sink = hn::GetLane(hn::Add(x0, hn::Add(x7, hn::Add(x8, x9))));
  return 2.0 * 10 * static_cast<double>(hn::Lanes(d)) * rounds;
}

}  // namespace HWY_NAMESPACE
}  // namespace renkei::cluster
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <thread>

#include "base/clock.h"
#include "cluster/local_machine.h"

namespace renkei::cluster {
namespace {

HWY_EXPORT(multiply_adds);

constexpr int kRuns = 3;
constexpr int kRounds = 1'000'000;
constexpr size_t kCopyBytes = 32 << 20;  // beyond the caches
// Large products on a CPU reach about this share of the multiply-add peak.
constexpr double kProductEfficiency = 0.75;
constexpr double kCallSeconds = 5e-6;

int usable_cores() {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  if (sched_getaffinity(0, sizeof mine, &mine) != 0) return 1;
  return std::max(1, CPU_COUNT(&mine));
}

int64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string key, unit; file >> key;) {
    int64_t kibibytes = 0;
    file >> kibibytes;
    if (key == "MemAvailable:") return kibibytes * 1024;
    std::getline(file, unit);
  }
  return int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
}

double copy_bytes_per_second(int threads) {
  std::vector<std::vector<char>> buffers(static_cast<size_t>(2 * threads),
                                         std::vector<char>(kCopyBytes, 1));
  double best = 0;
  for (int run = 0; run < kRuns; ++run) {
    const double begin = now_seconds();
    {
      std::vector<std::jthread> workers;
      for (size_t i = 0; i < buffers.size(); i += 2)
        workers.emplace_back(
            [&, i] { std::memcpy(buffers[i].data(), buffers[i + 1].data(), kCopyBytes); });
    }
    const double moved = 2.0 * static_cast<double>(kCopyBytes) * threads;
    best = std::max(best, moved / (now_seconds() - begin));
  }
  return best;
}

}  // namespace

MachineSpeed measure_machine() {
  MachineSpeed speed{.cores = usable_cores(), .memory_bytes = available_memory()};
  float sink = 0;
  for (int run = 0; run < kRuns; ++run) {
    const double begin = now_seconds();
    const double done = HWY_DYNAMIC_DISPATCH(multiply_adds)(kRounds, &sink);
    speed.core_flops_per_second =
        std::max(speed.core_flops_per_second, done / (now_seconds() - begin));
  }
  speed.memory_bytes_per_second = copy_bytes_per_second(speed.cores);
  return speed;
}

Description local_machine(const MachineSpeed& speed, int devices) {
  const double share = static_cast<double>(speed.cores) / devices;
  Description description{.name = "local", .summary = "this machine, measured"};
  description.kinds = {{.name = "cpu",
                        .flops_per_second = speed.core_flops_per_second * share,
                        .efficiency = kProductEfficiency,
                        .memory_bytes = speed.memory_bytes / devices,
                        .memory_bytes_per_second = speed.memory_bytes_per_second / devices,
                        .call_seconds = kCallSeconds}};
  // A message through shared memory is copied in and out.
  description.nodes = {{.count = 1,
                        .devices = devices,
                        .kind = 0,
                        .memory_bytes = speed.memory_bytes,
                        .link = {2e-6, speed.memory_bytes_per_second / 4}}};
  description.interconnect.link = description.nodes[0].link;
  return description;
}

}  // namespace renkei::cluster

#endif  // HWY_ONCE
