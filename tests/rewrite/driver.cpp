// Reads a .pt2 file, rewrites its program and prints as JSON how many operations of each kind there
// are then, and what was applied, for rewrite_pt2_test.py. With --text, the operations themselves.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "capture/pt2.h"
#include "program/print.h"
#include "rewrite/rewrite.h"

namespace {

using namespace renkei;

nlohmann::json summary(const rewrite::Rewritten& rewritten) {
  nlohmann::json targets = nlohmann::json::object(), applied = nlohmann::json::array();
  for (const auto& op : rewritten.program.ops) targets[op.target] = targets.value(op.target, 0) + 1;
  for (const auto& [rewrite, where, why_not] : rewritten.applied)
    applied.push_back({{"rewrite", rewrite}, {"where", where}, {"why_not", why_not}});
  return {{"targets", targets}, {"applied", applied}};
}

}  // namespace

int main(int count, char** arguments) {
  rewrite::RewriteOptions options;
  bool text = false;
  try {
    for (int i = 1; i < count; ++i) {
      const std::string argument = arguments[i];
      if (argument == "--simple") {
        options.general_convolutions = false;
      } else if (argument == "--text") {
        text = true;
      } else {
        const auto rewritten = rewrite::rewrite(capture::read_pt2(argument).program, options);
        fmt::print("{}\n", text ? print(rewritten.program) : summary(rewritten).dump());
      }
    }
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", format_for_people(error));
    return error.exit_code();
  }
  return 0;
}
