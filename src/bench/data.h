// How fast does data arrive, and would an accelerator have to wait for it? The terms are those of
// the MLPerf Storage benchmark: an emulated accelerator takes a batch and sleeps for as long as a
// real one computes; its utilisation is the share of the time in which it does. The wait for the
// first batch is left out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/loader/loader.h"
#include "data/storage/storage.h"
#include "data/stored_data.h"

namespace renkei::bench {

struct Accelerator {
  std::string name;
  double seconds_per_sample = 0;  // of ResNet-50 training, from the workloads of MLPerf Storage
};
const std::vector<Accelerator>& known_accelerators();

struct DataOptions {
  std::string source;
  int64_t batch = 256;
  int64_t most_samples = 0;       // use the first ones only; 0: all
  int64_t epochs = 2;             // the last one is measured
  int64_t most_steps = 0;         // of the measured epoch; 0: all
  double seconds_per_sample = 0;  // of the emulated accelerator; 0: none
  bool bare_decoding = false;     // also measure decoding without a loader
  uint64_t seed = 1;
  data::TransformOptions transform;
  data::LoaderOptions loader;
  data::StorageOptions storage;
};

struct DataRow {
  std::string source;
  std::string format;
  int64_t samples = 0;  // in the data set
  int64_t dataset_bytes = 0;
  int64_t memory_limit_bytes = 0;
  double epoch_seconds = 0;  // of what was measured
  double samples_per_second = 0;
  double mb_per_second = 0;  // bytes of the samples, as stored
  std::optional<double> utilisation;
  int64_t opens = 0;
  double read_amplification = 0;  // bytes read from storage / bytes of the samples
  double wait_p50_us = 0, wait_p99_us = 0;
  int64_t peak_memory_bytes = 0;  // of the process, over what it was before
  double decode_samples_per_second = 0;
  double shuffle_quality = 1;  // 1: as random as can be
};

DataRow measure_data(const DataOptions& options);

}  // namespace renkei::bench
