#include "bench/data.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <numeric>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "data/shuffle_quality.h"
#include "data/source/open_source.h"

namespace renkei::bench {
namespace {

// "VmRSS" or "VmHWM", in bytes; 0 where the system does not tell.
int64_t memory_of_process(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(name + ":")) return std::stoll(line.substr(name.size() + 1)) * 1024;
  return 0;
}

// So that VmHWM is the peak from here on.
void forget_peak_memory() {
  std::ofstream("/proc/self/clear_refs") << "5";
}

double quantile(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return 0;
  const auto place = static_cast<size_t>(share * static_cast<double>(sorted.size()));
  return sorted[std::min(sorted.size() - 1, place)];
}

void sleep_for(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

// The rate at which the same threads decode samples that are already in memory, into batches of
// their own: no loader can be faster.
double measure_decoding(const data::Dataset& dataset, int threads, uint64_t seed) {
  constexpr double kSeconds = 2;
  constexpr int64_t kSamples = 256;
  const data::Source& source = *dataset.source();
  const data::Sampler sampler({.count = dataset.count(), .seed = seed});
  const size_t input = data::field_index(dataset.fields(), data::kInput);
  const int64_t record = dataset.records_of({&input, 1}).front();
  std::vector<int64_t> samples;
  std::vector<std::string> bytes;
  for (int64_t i = 0; i < std::min(kSamples, dataset.count()); ++i) {
    samples.push_back(sampler.sample(0, i));
    bytes.push_back(source.read(samples.back(), record));
  }
  std::atomic<int64_t> next = 0;
  const double begin = now_seconds();
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < threads; ++i)
      workers.emplace_back([&] {
        const auto size = static_cast<size_t>(dataset.fields()[input].bytes());
        // As large as a batch, so that results go to memory as they do in training.
        std::vector<std::byte> batch(size * 64);
        while (now_seconds() - begin < kSeconds) {
          const int64_t turn = next++;
          const auto which = static_cast<size_t>(turn) % samples.size();
          const int64_t epoch = turn / static_cast<int64_t>(samples.size());
          const data::Record read{.number = record, .bytes = bytes[which]};
          const data::FieldSpan into{
              .field = input,
              .bytes = std::span(batch).subspan(static_cast<size_t>(turn % 64) * size, size)};
          dataset.decode(samples[which], epoch, {&read, 1}, {&into, 1});
        }
      });
  }
  return static_cast<double>(next) / (now_seconds() - begin);
}

struct Timing {
  double seconds = 0;  // without the wait for the first batch
  double compute_seconds = 0;
  int64_t samples = 0;
  std::vector<double> waits;
};

// One epoch; its first batch is there when the clock starts. Like a training loop, this takes the
// next batch while the accelerator computes with the one before.
Timing run_epoch(data::Loader& loader, int64_t epoch, int64_t steps, double seconds_per_sample) {
  Timing timing;
  auto batch = loader.load(epoch, 0);
  const double begin = now_seconds();
  const auto compute = [&] {
    const double seconds = seconds_per_sample * static_cast<double>(batch->samples);
    timing.compute_seconds += seconds;
    return seconds;
  };
  // Nobody waited for it, so it counts only where it is computed with.
  if (seconds_per_sample > 0) timing.samples = batch->samples;
  double idle_at = begin + compute();  // when the accelerator will have nothing to do
  for (int64_t step = 1; step < steps; ++step) {
    if (seconds_per_sample <= 0) batch.reset();
    auto next = loader.load(epoch, step);
    const double arrived = now_seconds();
    timing.waits.push_back(std::max(0.0, arrived - idle_at));
    sleep_for(idle_at - arrived);
    batch = std::move(next);
    timing.samples += batch->samples;
    idle_at = std::max(arrived, idle_at) + compute();
  }
  timing.seconds = idle_at - begin;
  std::ranges::sort(timing.waits);
  return timing;
}

}  // namespace

const std::vector<Accelerator>& known_accelerators() {
  static const std::vector<Accelerator> accelerators{
      {"v100", 0.195 / 64}, {"a100", 0.435 / 400}, {"h100", 0.224 / 400}};
  return accelerators;
}

DataRow measure_data(const DataOptions& options) {
  const auto storage = data::open_storage(options.source, options.storage);
  const data::StoredData dataset(
      data::open_source(storage, {.path = options.source, .threads = options.loader.threads}),
      {.transform = options.transform, .seed = options.seed});
  const data::Source& source = *dataset.source();
  DataRow row{.source = options.source,
              .format = std::string(source.format()),
              .samples = dataset.count(),
              .memory_limit_bytes = options.loader.memory_bytes};
  if (options.most_samples > 0) row.samples = std::min(row.samples, options.most_samples);
  for (int64_t sample = 0; sample < row.samples; ++sample)
    row.dataset_bytes += source.bytes(sample);
  if (options.bare_decoding)
    row.decode_samples_per_second = measure_decoding(dataset, options.loader.threads, options.seed);

  const int64_t memory_before = memory_of_process("VmRSS");
  forget_peak_memory();
  const data::Sampler sampler({.count = row.samples,
                               .global_batch = options.batch,
                               .seed = options.seed,
                               .run = options.loader.run});
  row.shuffle_quality = data::shuffle_quality(sampler, source.classes(),
                                              [&](int64_t sample) { return source.label(sample); });
  data::LoaderOptions loader_options = options.loader;
  loader_options.epochs = options.epochs;
  data::Loader loader(dataset, sampler, loader_options);
  const int64_t steps = options.most_steps > 0
                            ? std::min(options.most_steps, sampler.steps_per_epoch())
                            : sampler.steps_per_epoch();
  if (steps < 2 && options.seconds_per_sample <= 0)
    throw Error(ErrorCode::usage,
                fmt::format("{} samples are one batch, and the wait for the first is not measured",
                            row.samples),
                "choose a smaller --batch");
  for (int64_t epoch = 0; epoch + 1 < options.epochs; ++epoch)
    run_epoch(loader, epoch, sampler.steps_per_epoch(), 0);

  const int64_t opens = storage->counters().opens, read = storage->counters().bytes;
  const int64_t used = loader.statistics().bytes;
  const Timing timing = run_epoch(loader, options.epochs - 1, steps, options.seconds_per_sample);
  row.epoch_seconds = timing.seconds;
  row.samples_per_second = static_cast<double>(timing.samples) / timing.seconds;
  row.mb_per_second = row.samples_per_second * static_cast<double>(row.dataset_bytes) /
                      static_cast<double>(row.samples) / 1e6;
  if (options.seconds_per_sample > 0)  // more than 1 only by rounding
    row.utilisation = std::min(1.0, timing.compute_seconds / timing.seconds);
  row.opens = storage->counters().opens - opens;
  const auto bytes_used = static_cast<double>(loader.statistics().bytes - used);
  row.read_amplification =
      bytes_used > 0 ? static_cast<double>(storage->counters().bytes - read) / bytes_used : 0;
  row.wait_p50_us = quantile(timing.waits, 0.5) * 1e6;
  row.wait_p99_us = quantile(timing.waits, 0.99) * 1e6;
  row.peak_memory_bytes = std::max<int64_t>(0, memory_of_process("VmHWM") - memory_before);
  return row;
}

}  // namespace renkei::bench
