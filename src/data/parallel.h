#pragma once

#include <cstdint>
#include <functional>

namespace renkei::data {

// Called now and then from one thread at a time, with a growing `done`, at last with done == total.
// What it throws stops the work.
using Progress = std::function<void(int64_t done, int64_t total)>;

// Calls work(0) … work(count - 1), each once, on `threads` threads (0: one per core). Of several
// exceptions the one of the lowest index is thrown, so a broken input always names the same file.
void parallel_for(int64_t count, int threads, const std::function<void(int64_t index)>& work,
                  const Progress& progress = nullptr);

}  // namespace renkei::data
