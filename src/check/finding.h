#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace renkei::check {

enum class Status { pass, warn, fail, skip };  // skip: could not run

std::string_view name_of(Status status);

// What one check found on one rank or host.
struct Finding {
  std::string name;
  int level = 1;
  Status status = Status::pass;
  std::optional<int> rank = {};  // the rank that is meant, or the first of the host that is
  std::string host = {};
  std::optional<double> value = {};
  std::string unit = {};
  std::string expected = {};
  std::string reason = {};
};

nlohmann::json json_of(const Finding& finding);
Finding finding_from(const nlohmann::json& json);

// The worst that counts: fail, warn, or pass.
Status overall(const std::vector<Finding>& findings);

}  // namespace renkei::check
