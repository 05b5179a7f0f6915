// Small checkpoints, written as ranks would write them.
#pragma once

#include <numeric>

#include "base/file.h"
#include "checkpoint/shard.h"
#include "checkpoint/store.h"
#include "comm/transport/thread_transport.h"

namespace renkei::checkpoint {

struct Sample {
  std::vector<float> weight = numbers(60, 0), bias = numbers(5, 100), momentum = numbers(60, 200);
  std::vector<int64_t> counter{42};

  static std::vector<float> numbers(size_t count, float first) {
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), first);
    return values;
  }

  // What rank r of n writes: equal parts of each tensor, and the first one the counter.
  std::vector<Run> runs(int rank, int ranks) const {
    std::vector<Run> list;
    const auto add = [&](const std::string& name, const std::vector<float>& values,
                         std::vector<int64_t> sizes) {
      const size_t begin = values.size() * static_cast<size_t>(rank) / static_cast<size_t>(ranks);
      const size_t end = values.size() * static_cast<size_t>(rank + 1) / static_cast<size_t>(ranks);
      if (end > begin)
        list.push_back({.name = name,
                        .sizes = std::move(sizes),
                        .begin = static_cast<int64_t>(begin),
                        .bytes = std::as_bytes(std::span(values).subspan(begin, end - begin))});
    };
    add("layer.weight", weight, {6, 10});
    add("layer.bias", bias, {5});
    add("optimizer/0/layer.weight", momentum, {6, 10});
    if (rank == 0)
      list.push_back({.name = "counter",
                      .dtype = program::DType::i64,
                      .bytes = std::as_bytes(std::span(counter))});
    return list;
  }
};

inline Manifest manifest_of(int64_t step) {
  return {
      .progress =
          {.step = step, .steps = 100, .batch = 8, .samples = 80, .seed = 1, .optimizer = "sgd"},
      .settings = "[train]\nbatch = 8\n",
      .plan = "{\"version\":1}"};
}

inline std::filesystem::path write_sample(const std::filesystem::path& root, int64_t step,
                                          int ranks, Manifest manifest) {
  const auto directory = directory_of(root, step);
  make_directories(directory);
  const Sample sample;
  for (int rank = 0; rank < ranks; ++rank)
    add_shard(manifest, shard_from_text(to_text(
                            write_shard(directory / shard_name(rank), sample.runs(rank, ranks)))));
  sort_pieces(manifest);
  write_file_atomically(directory / "manifest.json", to_text(manifest));
  return directory;
}
inline std::filesystem::path write_sample(const std::filesystem::path& root, int64_t step,
                                          int ranks) {
  return write_sample(root, step, ranks, manifest_of(step));
}

// The step of the checkpoint that so many ranks would go on from, or -1.
inline int64_t newest_for(int ranks, const std::filesystem::path& root,
                          std::vector<std::string>* told = nullptr) {
  int64_t step = -1;
  comm::run_as_threads(ranks, [&](comm::Transport& transport) {
    const auto reader = open_newest(root, transport, {.operation = "test", .timeout_seconds = 60},
                                    [&](const std::string& text) {
                                      if (told) told->push_back(text);
                                    });
    if (transport.rank() == ranks - 1 && reader) step = reader->manifest().progress.step;
  });
  return step;
}

}  // namespace renkei::checkpoint
