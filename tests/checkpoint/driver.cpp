// Writes a checkpoint of random numbers as ranks would, reads it back as one rank would after
// verifying it, and prints the seconds: checkpoint_driver DIRECTORY MIB RANKS. For
// bench/checkpoints.py.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <random>
#include <thread>

#include "base/clock.h"
#include "base/file.h"
#include "checkpoint/shard.h"
#include "checkpoint/store.h"
#include "comm/transport/thread_transport.h"

using namespace renkei;

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::filesystem::path root = argv[1];
  const auto count = static_cast<size_t>(std::stoll(argv[2])) * (1 << 20) / sizeof(float);
  const int ranks = std::stoi(argv[3]);
  constexpr size_t kTensors = 40;
  std::vector<float> values(count);
  std::mt19937 random(1);
  for (float& value : values) value = static_cast<float>(random()) * 0x1p-32f;

  const auto directory = checkpoint::directory_of(root, 1);
  make_directories(directory);
  checkpoint::Manifest manifest{.progress = {.step = 1, .batch = 1, .samples = 1}};
  const size_t part = count / kTensors;
  const auto runs_of = [&](int rank) {
    std::vector<checkpoint::Run> runs;
    for (size_t t = static_cast<size_t>(rank); t < kTensors; t += static_cast<size_t>(ranks))
      runs.push_back({.name = fmt::format("tensor{}", t),
                      .sizes = {static_cast<int64_t>(part)},
                      .bytes = std::as_bytes(std::span(values).subspan(t * part, part))});
    return runs;
  };
  const double begin = now_seconds();
  std::vector<checkpoint::Shard> shards(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      shards[static_cast<size_t>(rank)] =
          checkpoint::write_shard(directory / checkpoint::shard_name(rank), runs_of(rank));
    });
  for (std::thread& thread : threads) thread.join();
  for (checkpoint::Shard& shard : shards) checkpoint::add_shard(manifest, std::move(shard));
  write_file_atomically(directory / "manifest.json", checkpoint::to_text(manifest));
  const double saved = now_seconds() - begin;

  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const int file = ::open(entry.path().c_str(), O_RDONLY);
    ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);  // from the disk, not from memory
    ::close(file);
  }
  std::vector<float> read(count);
  const double again = now_seconds();
  comm::run_as_threads(ranks, [&](comm::Transport& transport) {
    auto reader = checkpoint::open_newest(root, transport, {}, {});
    for (size_t t = static_cast<size_t>(transport.rank()); t < kTensors;
         t += static_cast<size_t>(ranks)) {
      const std::vector<int64_t> sizes{static_cast<int64_t>(part)};
      reader->read(fmt::format("tensor{}", t), {.sizes = sizes}, 0,
                   std::as_writable_bytes(std::span(read).subspan(t * part, part)));
    }
  });
  const double loaded = now_seconds() - again;
  fmt::print("{{\"save\": {}, \"load\": {}, \"equal\": {}}}\n", saved, loaded,
             std::equal(read.begin(), read.begin() + static_cast<int64_t>(kTensors * part),
                        values.begin()));
}
