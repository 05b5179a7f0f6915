// Python's pickle format is a program for a stack machine that may call any function. Here only the
// instructions are understood that put dictionaries, lists, texts and numbers together; calls
// become nodes of the result, for the reader to understand or to refuse by name. Nothing is
// executed.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace renkei::capture {

struct PickleValue {
  enum class Kind : uint8_t {
    none,
    boolean,
    integer,
    real,
    text,
    global,      // a name in a module: "torch.FloatStorage"
    list,        // also a tuple or a set
    dictionary,  // items are key, value, key, value …
    call,        // items are the function and its arguments (a list)
    persistent   // what torch.save keeps beside the pickle; items[0] says what
  };
  Kind kind = Kind::none;
  int64_t integer = 0;
  double real = 0;
  std::string text = {};
  std::vector<const PickleValue*> items = {};
};

// All values of a pickle; they refer to one another, possibly in circles.
struct Pickle {
  std::deque<PickleValue> values;
  const PickleValue* root = nullptr;
};

// Throws a data Error that begins with `place`.
Pickle parse_pickle(std::string_view bytes, const std::string& place);

}  // namespace renkei::capture
