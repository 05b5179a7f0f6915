// The nodes of an exported graph become the operations of a program.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "capture/pt2_arguments.h"
#include "capture/pt2_symbols.h"

namespace renkei::capture {

class GraphReader {
 public:
  // `file` begins all messages.
  GraphReader(program::Program& program, Symbols& symbols, Place file)
      : program_(program), symbols_(symbols), file_(std::move(file)) {}

  // A new value, as the graph describes its tensor or number of that name.
  program::ValueId add_tensor(const json& graph, const std::string& name, const Place& place);
  program::ValueId add_number(const std::string& name, program::ValueKind kind);

  // All nodes, in order; the names of inputs are bound already.
  void read_nodes(const json& graph, Scope& scope, bool no_grad = false);

 private:
  struct Node {
    const json& content;
    const json& graph;
    std::string target;
    std::string module, source;
    Place place;
    bool no_grad;
  };

  void read_node(const json& content, const json& graph, Scope& scope, bool no_grad);
  void add_op(const Node& node, Scope& scope);
  void add_outputs(const json& output, const Node& node, Scope& scope, program::Op& op);
  void inline_graph(const Node& node, Scope& scope);
  program::ValueId add_value(program::Value value);

  program::Program& program_;
  Symbols& symbols_;
  Place file_;
  std::unordered_map<std::string, int> names_;  // of values: how often each was asked for
};

}  // namespace renkei::capture
