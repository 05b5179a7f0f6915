// Writes programs: each method appends one operation, works out what shape its result has and
// gives back a handle to it.
//
// Operations, the names of their arguments and which arguments are left out are as torch.export
// gives them for the same module in training mode, so that built-in and captured networks look
// alike to everything behind: trailing arguments that have the schema's default are left out.
//
// A size that depends on the batch can be a whole dimension of a view, where it is given as -1.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "program/program.h"

namespace renkei::program {

class Builder {
 public:
  struct Pair {
    int64_t height = 0, width = 0;
    Pair(int64_t side) : height(side), width(side) {}  // NOLINT: a square is a pair
    Pair(int64_t height, int64_t width) : height(height), width(width) {}
    bool operator==(const Pair&) const = default;
  };
  struct Window {
    Pair kernel;
    Pair stride = 1;
    Pair padding = 0;
  };
  enum class Reduction : int64_t { none = 0, mean = 1, sum = 2 };  // Torch's numbers

  explicit Builder(std::string name);  // an empty program with the symbol "batch"
  explicit Builder(Program program);   // goes on where a program ends

  // The modules that operations belong to: names are below the scope that is open. A name "" is
  // the scope itself.
  class Scope {
   public:
    Scope(Builder& builder, std::string_view name);
    ~Scope() { builder_.scope_.resize(outer_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Builder& builder_;
    size_t outer_;
  };
  [[nodiscard]] Scope scope(std::string_view name) { return {*this, name}; }
  std::string path(std::string_view name) const;  // with the open scopes before it

  const Program& program() const { return program_; }  // as far as it is written
  const Value& value(ValueId id) const { return program_.value(id); }
  const std::vector<Size>& sizes(ValueId id) const { return value(id).sizes; }
  int64_t size(ValueId id, int64_t dim) const;  // of a dimension that is a number; -1: the last
  Size batch() const { return batch_; }

  ValueId input(std::string name, DType dtype, std::vector<Size> sizes);
  ValueId parameter(std::string_view name, std::vector<int64_t> sizes, const Initial& initial);
  ValueId buffer(std::string_view name, std::vector<int64_t> sizes, DType dtype,
                 const Initial& initial);
  void alias(ValueId parameter, std::string_view name);  // a further name of a tied parameter
  void output(std::string name, ValueId value);

  // What images go through. Handles come first, then the name of the module.
  ValueId conv2d(ValueId input, ValueId weight, ValueId bias, const Window& window,
                 std::string_view module = "");
  ValueId max_pool2d(ValueId input, const Window& window, std::string_view module = "");
  ValueId avg_pool2d(ValueId input, const Window& window, std::string_view module = "");
  ValueId adaptive_avg_pool2d(ValueId input, int64_t side, std::string_view module = "");
  struct Statistics {
    ValueId mean, variance;
  };
  ValueId batch_norm(ValueId input, ValueId weight, ValueId bias, const Statistics& running,
                     double eps, std::string_view module = "");

  ValueId linear(ValueId input, ValueId weight, ValueId bias, std::string_view module = "");
  ValueId embedding(ValueId weight, ValueId indices, std::string_view module = "");
  ValueId layer_norm(ValueId input, ValueId weight, ValueId bias, std::string_view module = "");
  ValueId relu(ValueId input, std::string_view module = "");
  ValueId relu_(ValueId input, std::string_view module = "");  // in place
  ValueId gelu(ValueId input, std::string_view module = "");
  ValueId dropout(ValueId input, double share, std::string_view module = "");
  struct Attention {
    double dropout = 0;
    bool causal = false;
  };
  ValueId attention(ValueId query, ValueId key, ValueId value, const Attention& options);

  ValueId add(ValueId a, ValueId b);
  ValueId add_(ValueId a, const Argument& b, std::string_view module = "");  // in place
  ValueId mul(ValueId a, const Argument& b);
  ValueId div(ValueId a, const Argument& b);
  ValueId ne(ValueId a, int64_t number);
  ValueId eq(ValueId a, ValueId b);
  ValueId clamp_min(ValueId a, int64_t least);
  ValueId argmax(ValueId input, int64_t dim);
  ValueId sum(ValueId input);               // of everything
  ValueId sum(ValueId input, int64_t dim);  // along one dimension
  ValueId to(ValueId input, DType dtype);

  ValueId cat(std::span<const ValueId> parts, int64_t dim);
  std::vector<ValueId> split(ValueId input, int64_t size, int64_t dim);
  ValueId narrow(ValueId input, int64_t dim, int64_t start, int64_t length);
  ValueId transpose(ValueId input, int64_t a, int64_t b);
  ValueId flatten(ValueId input, int64_t first, std::string_view module = "");
  ValueId view(ValueId input, std::vector<Size> sizes);
  ValueId reshape(ValueId input, std::vector<Size> sizes);
  ValueId sym_size(ValueId input, int64_t dim);  // a number

  ValueId cross_entropy_loss(ValueId scores, ValueId labels, Reduction reduction,
                             double label_smoothing);
  ValueId mse_loss(ValueId values, ValueId target, Reduction reduction);

  // Any other operation with one result.
  struct Result {
    DType dtype;
    std::vector<Size> sizes;
  };
  ValueId op(std::string target, std::vector<NamedArgument> arguments, Result result,
             std::string_view module = "");

  // The newest operation makes this value, which nothing else makes, instead of a new one.
  void becomes(ValueId value);

  Program finish();  // the program, checked; the builder is then empty
  Program take();    // the same as it is, for those who change it and check it then

 private:
  ValueId add_value(std::string_view wanted_name, ValueKind kind, DType dtype,
                    std::vector<Size> sizes);
  ValueId add_state(std::string_view name, StateKind kind, std::vector<int64_t> sizes, DType dtype,
                    const Initial& initial);
  ValueId like(ValueId model, std::string target, std::vector<NamedArgument> arguments,
               std::string_view module = "");
  Result windows(ValueId input, const Window& window, int64_t channels) const;
  ValueId pool(const char* target, ValueId input, const Window& window, std::string_view module);
  ValueId with_sizes(const char* target, const char* argument, ValueId input,
                     std::vector<Size> sizes);
  [[noreturn]] void refuse(std::string_view target, const std::string& why) const;

  Program program_;
  Size batch_;
  std::string scope_;
  std::set<std::string, std::less<>> names_;  // of values, all different
  std::map<std::string, int, std::less<>> suffixes_;
};

}  // namespace renkei::program
