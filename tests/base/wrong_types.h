#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace renkei::test {

// Every field of a good file in turn becomes something of another type or size. Reading it must end
// well or in a data Error, never in anything worse.
inline void survives_wrong_types(const nlohmann::json& good,
                                 const std::function<void(const nlohmann::json&)>& read) {
  const std::vector<nlohmann::json> wrong = {nullptr,
                                             -1,
                                             0,
                                             0.5,
                                             1e300,
                                             2147483648,
                                             18446744073709551615u,
                                             "text",
                                             true,
                                             nlohmann::json::array({1}),
                                             nlohmann::json::object()};
  const nlohmann::json flat = good.flatten();
  for (const auto& [path, ignored] : flat.items())
    for (const nlohmann::json& value : wrong) {
      nlohmann::json changed = good;
      changed[nlohmann::json::json_pointer(path)] = value;
      try {
        read(changed);
      } catch (const Error& error) {
        EXPECT_EQ(error.code, ErrorCode::data) << path << ": " << error.message;
      }
    }
}

}  // namespace renkei::test
