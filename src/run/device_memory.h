// A rank with a device of limited memory: what exceeds it fails, with an Error that says who holds
// the memory. On a CPU this makes a rank behave as a small accelerator.
#pragma once

#include <exception>

#include "run/shared_parameters.h"

namespace renkei::run {

class DeviceMemory {
 public:
  // No limit: 0. Throws at once if what is there already is too much.
  DeviceMemory(int64_t limit, const Held& held, int rank, const std::string& host);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Does the work; where Torch reports in its own way that memory was refused, throws our Error.
  template <typename Work>
  auto within(Work work) const {
    try {
      return work();
    } catch (const std::exception&) {
      throw_if_refused();
      throw;
    }
  }

 private:
  void throw_if_refused() const;
  [[noreturn]] void fail(int64_t asked, int64_t live) const;

  int64_t limit_;
  Held held_;
  int rank_;
  std::string host_;
};

}  // namespace renkei::run
