#include "graph/graph_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json_fields.h"
#include "tests/base/temporary_directory.h"
#include "tests/base/thrown_error.h"
#include "tests/base/wrong_types.h"
#include "tests/graph/graphs.h"

namespace renkei::graph {
namespace {

using test::TemporaryDirectory;
using test::thrown_error;

// Just the fields that the format requires, with numbers as ids.
const std::string kSmall = R"({"version": 1, "batch": 2,
  "ops": [{"id": 0, "name": "fc", "kind": "linear", "inputs": [0], "outputs": [1],
           "forward_seconds": 0.5, "backward_seconds": 1.0, "saved_bytes": 64,
           "workspace_bytes": 0, "parameters": ["w"]}],
  "values": [{"id": 0, "bytes": 64, "batch": true, "gradient": false},
             {"id": 1, "bytes": 64, "batch": true, "gradient": true}],
  "parameters": [{"id": "w", "name": "weight", "bytes": 256}],
  "inputs": [0], "outputs": [1]})";

Graph parse(const std::string& text) {
  return graph_from_json(parse_json(text, "g.json"), "g.json");
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t place = text.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  return text.replace(place, from.size(), to);
}

void expect_refused(const std::string& text, const std::string& part) {
  const Error error = thrown_error([&] { parse(text); });
  EXPECT_EQ(error.code, ErrorCode::data);
  EXPECT_NE(error.message.find(part), std::string::npos) << error.message;
}

TEST(GraphFile, HasTheDocumentedFields) {
  const Graph graph = parse(kSmall);
  EXPECT_EQ(graph.batch, 2);
  EXPECT_EQ(graph.ops[0].name, "fc");
  EXPECT_EQ(graph.ops[0].backward_seconds, 1.0);
  EXPECT_EQ(graph.ops[0].parameters, std::vector<ParameterIndex>{0});
  EXPECT_FALSE(graph.values[0].gradient);
  EXPECT_EQ(graph.parameters[0].bytes, 256);
}

TEST(GraphFile, ReadsBackWhatItWrote) {
  const TemporaryDirectory directory;
  const Graph graph = test::network_graph("resnet18");
  save_graph(graph, directory / "graph.json");
  EXPECT_EQ(to_json(load_graph(directory / "graph.json")), to_json(graph));
}

TEST(GraphFile, RefusesKeysThatNobodyReads) {
  expect_refused(replaced(kSmall, "\"batch\": 2", "\"batch\": 2, \"colour\": [1]"),
                 "g.json: colour is not a known key");
  const std::string misspelled = replaced(kSmall, "workspace_bytes", "work_space_bytes");
  const Error error = thrown_error([&] { parse(misspelled); });
  EXPECT_EQ(error.message, "g.json: ops[0].work_space_bytes is not a known key");
  EXPECT_EQ(error.hint, "did you mean workspace_bytes?");
  expect_refused(replaced(kSmall, "\"gradient\": false", "\"gradient\": false, \"size\": 3"),
                 "values[0].size");
  expect_refused(replaced(kSmall, "\"bytes\": 256", "\"bytes\": 256, \"frozen\": true"),
                 "parameters[0].frozen");
}

TEST(GraphFile, RefusesBytesThatShapeAndDtypeContradict) {
  const auto with = [&](const std::string& shape) {
    return replaced(kSmall, "\"gradient\": false", "\"gradient\": false, " + shape);
  };
  EXPECT_EQ(parse(with(R"("shape": [2, 8], "dtype": "f32")")).values[0].bytes, 64);
  EXPECT_EQ(parse(with(R"("shape": [2, 9], "dtype": "fp8")")).values[0].bytes, 64);
  expect_refused(with(R"("shape": [2, 9], "dtype": "f32")"),
                 "values[0].bytes must be 72, as shape and dtype say");
}

TEST(GraphFile, NamesThePlaceOfWhatIsWrong) {
  expect_refused(replaced(kSmall, "\"version\": 1", "\"version\": 2"), "version 2");
  expect_refused(replaced(kSmall, "\"forward_seconds\": 0.5", "\"forward_seconds\": -1"),
                 "g.json: ops[0].forward_seconds must be a number from 0");
  expect_refused(replaced(kSmall, "\"forward_seconds\": 0.5,", ""),
                 "forward_seconds must be there");
  expect_refused(replaced(kSmall, "\"inputs\": [0], \"outputs\": [1],\n",
                          "\"inputs\": [5], \"outputs\": [1],\n"),
                 "ops[0].inputs must be ids of values, and there is none with the id '5'");
  expect_refused(replaced(kSmall, "\"batch\": 2", "\"batch\": 0"), "batch must be a whole number");
  expect_refused(kSmall.substr(0, 200), "line 4: this is not valid JSON");
  expect_refused("[]", "must be a JSON object");
}

TEST(GraphFile, TreatsANumberAndItsTextAsTheSameId) {
  const Graph graph = parse(replaced(kSmall, "\"outputs\": [1]}", "\"outputs\": [\"1\"]}"));
  EXPECT_EQ(graph.outputs, std::vector<ValueIndex>{1});
}

// Any damage ends in a graph or in an Error of the data kind, never in anything else.
TEST(GraphFile, SurvivesDamage) {
  const std::string whole = to_json(test::network_graph("lenet")).dump();
  const std::string junk = "{}[]\",:-0123456789eE.ntf\\\x80";
  Random random(7, RandomUse::random_input, 0, 0);
  int refused = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string text = round % 2 ? whole : kSmall;
    const uint32_t changes = 1 + random.below(4);
    for (uint32_t change = 0; change < changes; ++change) {
      const size_t place = random.below(static_cast<uint32_t>(text.size()));
      const char replacement = junk[random.below(static_cast<uint32_t>(junk.size()))];
      switch (random.below(3)) {
        case 0:
          text[place] = replacement;
          break;
        case 1:
          text.erase(place, 1 + random.below(8));
          break;
        default:
          text.insert(place, 1, replacement);
          break;
      }
    }
    try {
      parse(text);
    } catch (const Error& error) {
      EXPECT_EQ(error.code, ErrorCode::data) << error.message;
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST(GraphFile, SurvivesWrongTypesEverywhere) {
  test::survives_wrong_types(nlohmann::json::parse(kSmall),
                             [](const nlohmann::json& json) { graph_from_json(json, "g.json"); });
}

}  // namespace
}  // namespace renkei::graph
