#include "tune/journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace renkei::tune {
namespace {

// A fingerprint of the space that people can read.
std::string describe(const Space& space) {
  std::string text;
  for (const Parameter& p : space.parameters) {
    text += fmt::format("{}{}={}", text.empty() ? "" : "; ", p.name, p.logarithmic ? "log " : "");
    text += p.kind == Kind::choice ? fmt::format("{}", fmt::join(p.choices, ","))
                                   : fmt::format("{} to {}", p.low, p.high);
  }
  for (const ProductConstraint& constraint : space.constraints)
    text += fmt::format("; {}={}", fmt::join(constraint.names, "*"), constraint.product);
  return text;
}

}  // namespace

Journal::Journal(const std::filesystem::path& file, const Space& space, const std::string& subject)
    : space_(space), subject_(subject), writer_(file) {
  const std::string wanted = describe(space);
  bool known = false;
  read_json_lines(file, [&](const nlohmann::json& line) {
    if (line.value("subject", "") != subject) return;
    if (line.contains("space")) {
      if (line.at("space") != wanted)
        throw Error(ErrorCode::usage,
                    fmt::format("{} has a search over other parameters: {}", file.string(),
                                line.at("space").get<std::string>()),
                    "name another --journal, or give the same parameters");
      known = true;
      return;
    }
    Trial trial{.number = line.at("trial"),
                .point = line.at("point").get<Point>(),
                .seconds = line.at("seconds")};
    if (!line.at("loss").is_null()) trial.loss = line.at("loss").get<double>();
    trials_.push_back(std::move(trial));
  });
  std::ranges::stable_sort(trials_, {}, &Trial::number);
  if (!known) writer_.append(nlohmann::json{{"subject", subject}, {"space", wanted}}.dump());
}

void Journal::append(const Trial& trial) {
  nlohmann::json line{{"subject", subject_},  {"trial", trial.number},
                      {"point", trial.point}, {"settings", texts_of(space_, trial.point)},
                      {"loss", nullptr},      {"seconds", trial.seconds}};
  if (trial.loss) line["loss"] = *trial.loss;
  writer_.append(line.dump());
}

}  // namespace renkei::tune
