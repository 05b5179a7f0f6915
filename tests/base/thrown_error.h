#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"

namespace renkei::test {

// The Error that `work` throws; the test fails when it throws none.
inline Error thrown_error(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no Error was thrown";
  return Error(ErrorCode::bug, "no Error was thrown");
}

}  // namespace renkei::test
