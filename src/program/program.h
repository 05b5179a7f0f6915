// What is computed: plain structs, without Torch.
//
// A program is a list of operations on values. It is written by the built-in networks (networks/),
// read from a .pt2 file (capture/), made faster (rewrite/), cut into stages (graph/, plan/) and run
// (run/executor.h). One program holds for every batch size: sizes that depend on it are
// expressions.
//
// Operations are those of PyTorch's dispatcher, with the level of detail that torch.export gives in
// training mode: conv2d, batch_norm, linear and dropout are one operation each. They are not pure:
// relu_ changes its argument, batch_norm its running statistics; the order of the list is the order
// of what they do (effects.h says who writes what).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "program/size.h"

namespace renkei::program {

inline constexpr int kFormatVersion = 1;  // of the JSON form

// Places in the vectors of a Program.
using ValueId = int;
inline constexpr ValueId kNoValue = -1;

enum class DType : uint8_t { f32, f64, f16, bf16, i64, i32, i16, i8, u8, boolean, c64, c128 };
inline constexpr DType kAllDTypes[] = {DType::f32, DType::f64,     DType::f16, DType::bf16,
                                       DType::i64, DType::i32,     DType::i16, DType::i8,
                                       DType::u8,  DType::boolean, DType::c64, DType::c128};
std::string_view name_of(DType dtype);  // "f32"
std::optional<DType> dtype_from_name(std::string_view name);
int64_t bytes_of(DType dtype);
bool is_floating(DType dtype);  // can have a gradient; complex numbers too

enum class ValueKind : uint8_t { tensor, integer, real, boolean };  // the last three: one number

struct Value {
  std::string name;
  ValueKind kind = ValueKind::tensor;
  DType dtype = DType::f32;
  std::vector<Size> sizes = {};
};

// What an operation is given.
struct None {
  bool operator==(const None&) const = default;
};
struct Reference {  // to a value
  ValueId value = kNoValue;
  bool operator==(const Reference&) const = default;
};
struct Word {  // of one of Torch's enumerations: "cpu", "strided", "contiguous_format"
  std::string text;
  bool operator==(const Word&) const = default;
};
struct Argument;
using List = std::vector<Argument>;
struct Argument
    : std::variant<None, Reference, bool, int64_t, double, std::string, DType, Word, List> {
  using variant::variant;
};

struct NamedArgument {
  std::string name;  // as the operation's schema has it
  Argument value;
};

struct Op {
  // "aten.conv2d.default": namespace, name, overload. Arithmetic on sizes is "operator.mul".
  std::string target;
  std::vector<NamedArgument> arguments;  // those left out have the schema's default
  std::vector<ValueId> outputs;          // kNoValue: a result that nobody uses
  std::string module = {};               // the layer that it belongs to: "layer1.0.conv1"
  std::string source = {};               // where it was written: "resnet.py:143 in forward"
  bool no_grad = false;                  // was written under torch.no_grad()
};

// How a parameter or buffer starts. A value depends on the seed and the name of the parameter only.
struct Initial {
  enum class Kind : uint8_t { given, constant, uniform, normal, truncated_normal, count };
  Kind kind = Kind::given;  // given: by a file. count: 0, 1, 2 … (position ids)
  double a = 0;             // constant: the value; uniform: low; normal: mean
  double b = 0;  // uniform: high; normal: deviation; truncated_normal too, cut off at ±2
};

enum class StateKind : uint8_t { parameter, buffer, constant };

// A tensor that stays from step to step: learnt, updated by the operations, or fixed.
struct State {
  std::string name;  // as in PyTorch's state_dict
  StateKind kind = StateKind::parameter;
  ValueId value = kNoValue;
  Initial initial = {};
  std::vector<std::string> aliases = {};  // further names, of tied parameters
  bool trainable = true;                  // of a parameter: requires_grad
  bool persistent = true;                 // is part of the state_dict
};

struct Port {
  std::string name;
  ValueId value = kNoValue;
};

struct Symbol {
  std::string name;
  int64_t low = 1, high = INT64_MAX;
  bool batch = false;  // the number of samples
};

struct Program {
  std::string name;
  std::vector<Symbol> symbols;
  std::vector<Value> values;
  std::vector<State> state;  // parameters first, then buffers, then constants
  std::vector<Port> inputs, outputs;
  std::vector<Op> ops;

  const Value& value(ValueId id) const { return values[static_cast<size_t>(id)]; }
};

// Helpers that need no knowledge of operations.
const Argument* find_argument(const Op& op, std::string_view name);  // null: left out
void set_argument(Op& op, std::string_view name, Argument value);    // replaces or adds
std::vector<ValueId> references(const Op& op);                       // all, in order, with repeats
std::string_view batch_symbol(const Program& program);               // empty: there is none
SymbolValues with_batch(const Program& program, int64_t samples);    // other symbols: their lowest
std::vector<int64_t> sizes_of(const Value& value, const SymbolValues& symbols);
int64_t bytes_of(const Value& value, const SymbolValues& symbols);

// Throws a data Error that names the place, if something does not hold: places in range, every
// value made before it is used and once, names of state, inputs and outputs unique and not empty,
// sizes that only mention known symbols, one batch symbol at the most. `source` begins the message.
void check(const Program& program, const std::string& source);

}  // namespace renkei::program
