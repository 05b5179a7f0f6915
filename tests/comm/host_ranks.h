// Ranks of one host as threads, each with a host transport: what processes do, where sanitizers
// see.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "comm/transport/host_transport.h"

namespace renkei::comm {

// The first exception of a rank is rethrown when all have ended.
inline void run_on_host(int ranks, const std::function<void(Transport&)>& body) {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::string> table;
  const Rendezvous rendezvous{.put =
                                  [&](const std::string& key, const std::string& value) {
                                    const std::lock_guard lock(mutex);
                                    table[key] = value;
                                    changed.notify_all();
                                  },
                              .get =
                                  [&](const std::string& key, int /*rank*/) {
                                    std::unique_lock lock(mutex);
                                    changed.wait(lock, [&] { return table.contains(key); });
                                    return table[key];
                                  }};
  std::exception_ptr failure;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      try {
        const auto transport = make_host_transport(rank, ranks, rendezvous, {.host = "here"});
        body(*transport);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace renkei::comm
