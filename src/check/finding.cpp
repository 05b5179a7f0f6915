#include "check/finding.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace renkei::check {

std::string_view name_of(Status status) {
  switch (status) {
    case Status::pass:
      return "pass";
    case Status::warn:
      return "warn";
    case Status::fail:
      return "fail";
    case Status::skip:
      return "skip";
  }
  return "?";
}

nlohmann::json json_of(const Finding& finding) {
  nlohmann::json json{
      {"name", finding.name}, {"level", finding.level},       {"status", name_of(finding.status)},
      {"rank", nullptr},      {"host", finding.host},         {"value", nullptr},
      {"unit", finding.unit}, {"expected", finding.expected}, {"reason", finding.reason}};
  if (finding.rank) json["rank"] = *finding.rank;
  if (finding.value) json["value"] = *finding.value;
  return json;
}

Finding finding_from(const nlohmann::json& json) {
  Finding finding{.name = json.at("name"),
                  .level = json.at("level"),
                  .host = json.at("host"),
                  .unit = json.at("unit"),
                  .expected = json.at("expected"),
                  .reason = json.at("reason")};
  for (const Status status : {Status::pass, Status::warn, Status::fail, Status::skip})
    if (json.at("status") == name_of(status)) finding.status = status;
  if (!json.at("rank").is_null()) finding.rank = json.at("rank").get<int>();
  if (!json.at("value").is_null()) finding.value = json.at("value").get<double>();
  return finding;
}

Status overall(const std::vector<Finding>& findings) {
  const auto any = [&](Status status) {
    return std::ranges::any_of(findings, [&](const Finding& f) { return f.status == status; });
  };
  return any(Status::fail) ? Status::fail : any(Status::warn) ? Status::warn : Status::pass;
}

}  // namespace renkei::check
