#include "capture/pickle.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <unordered_map>

#include "base/error.h"

namespace renkei::capture {
namespace {

using Kind = PickleValue::Kind;

constexpr size_t kMostValues = 8'000'000;

class Machine {
 public:
  Machine(std::string_view bytes, const std::string& place) : bytes_(bytes), place_(place) {}

  Pickle run() {
    while (!pickle_.root) step();
    return std::move(pickle_);
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    throw Error(ErrorCode::data,
                fmt::format("{}: {} (at byte {} of its pickle)", place_, what, at_),
                "the file is damaged, or holds more than tensors: save only model.state_dict()");
  }

  std::string_view take(uint64_t count) {
    if (count > bytes_.size() - at_) refuse("it ends too early");
    const std::string_view taken = bytes_.substr(at_, count);
    at_ += count;
    return taken;
  }

  template <typename T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }

  std::string_view line() {
    const size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) refuse("it ends too early");
    const std::string_view taken = bytes_.substr(at_, end - at_);
    at_ = end + 1;
    return taken;
  }

  // Whole numbers of any length, two's complement.
  int64_t long_number(uint64_t length) {
    const std::string_view digits = take(length);
    if (length > 8) refuse("it has a number beyond 64 bits");
    if (length == 0) return 0;
    uint64_t value = digits.back() < 0 ? ~uint64_t{0} : 0;
    std::memcpy(&value, digits.data(), digits.size());
    return static_cast<int64_t>(value);
  }

  void push(PickleValue value) {
    if (pickle_.values.size() == kMostValues) refuse("it has too many values");
    stack_.push_back(&pickle_.values.emplace_back(std::move(value)));
  }

  PickleValue* pop() {
    if (stack_.empty() || stack_.size() == lowest()) refuse("it takes what is not there");
    PickleValue* value = stack_.back();
    stack_.pop_back();
    return value;
  }

  PickleValue* top() {
    if (stack_.empty() || stack_.size() == lowest()) refuse("it takes what is not there");
    return stack_.back();
  }

  size_t lowest() const { return marks_.empty() ? 0 : marks_.back(); }

  // All that was pushed since the last mark.
  std::vector<const PickleValue*> pop_mark() {
    if (marks_.empty()) refuse("it lacks a mark");
    const auto begin = stack_.begin() + static_cast<int64_t>(marks_.back());
    std::vector<const PickleValue*> items(begin, stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return items;
  }

  void push_tuple(size_t count) {
    PickleValue tuple{.kind = Kind::list};
    tuple.items.resize(count);
    for (size_t i = count; i-- > 0;) tuple.items[i] = pop();
    push(std::move(tuple));
  }

  void push_text(uint64_t length) { push({.kind = Kind::text, .text = std::string(take(length))}); }

  void push_global(std::string_view module, std::string_view name) {
    if (module.size() + name.size() > 1000) refuse("it has a name that is no name");
    push({.kind = Kind::global, .text = fmt::format("{}.{}", module, name)});
  }

  void remember(uint64_t index) { memo_[index] = top(); }

  void recall(uint64_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end()) refuse("it recalls what it did not remember");
    stack_.push_back(found->second);
  }

  void append_to(Kind kind, const std::vector<const PickleValue*>& items) {
    PickleValue* container = top();
    // OrderedDict is called, and then filled.
    const bool filled_call = kind == Kind::dictionary && container->kind == Kind::call;
    if (container->kind != kind && !filled_call) refuse("it fills what is no container");
    if (kind == Kind::dictionary && items.size() % 2 != 0) refuse("it has a key without a value");
    if (filled_call && container->items.size() < 2) refuse("it fills what is no container");
    container->items.insert(container->items.end(), items.begin(), items.end());
  }

  void call() {
    PickleValue* arguments = pop();
    PickleValue* function = pop();
    if (arguments->kind != Kind::list) refuse("it calls without arguments");
    push({.kind = Kind::call, .items = {function, arguments}});
  }

  void step() {
    const auto code = static_cast<unsigned char>(take(1)[0]);
    if (!simple(code) && !with_text(code) && !structure(code))
      refuse(
          fmt::format("it has the instruction 0x{:02x}, which a state dict does not need", code));
  }

  // Numbers and names.
  bool simple(unsigned char code) {
    switch (code) {
      case 0x80:  // PROTO
        if (number<uint8_t>() > 5) refuse("it is of a newer version");
        return true;
      case 0x95:  // FRAME
        number<uint64_t>();
        return true;
      case 'N':
        push({});
        return true;
      case 0x88:
      case 0x89:
        push({.kind = Kind::boolean, .integer = code == 0x88});
        return true;
      case 'J':
        push({.kind = Kind::integer, .integer = number<int32_t>()});
        return true;
      case 'K':
        push({.kind = Kind::integer, .integer = number<uint8_t>()});
        return true;
      case 'M':
        push({.kind = Kind::integer, .integer = number<uint16_t>()});
        return true;
      case 0x8a:
        push({.kind = Kind::integer, .integer = long_number(number<uint8_t>())});
        return true;
      case 0x8b:
        push({.kind = Kind::integer, .integer = long_number(number<uint32_t>())});
        return true;
      case 'G':
        push({.kind = Kind::real,
              .real = std::bit_cast<double>(__builtin_bswap64(number<uint64_t>()))});
        return true;
      default:
        return false;
    }
  }

  bool with_text(unsigned char code) {
    switch (code) {
      case 'X':
      case 'T':
      case 'B':
        push_text(number<uint32_t>());
        return true;
      case 0x8c:
      case 'U':
      case 'C':
        push_text(number<uint8_t>());
        return true;
      case 0x8d:
      case 0x8e:
        push_text(number<uint64_t>());
        return true;
      case 'c': {
        const std::string_view module = line();
        push_global(module, line());
        return true;
      }
      case 0x93: {  // STACK_GLOBAL
        const PickleValue* name = pop();
        const PickleValue* module = pop();
        if (name->kind != Kind::text || module->kind != Kind::text) refuse("it names no name");
        push_global(module->text, name->text);
        return true;
      }
      case 'q':
        remember(number<uint8_t>());
        return true;
      case 'r':
        remember(number<uint32_t>());
        return true;
      case 0x94:
        remember(memo_.size());
        return true;
      case 'h':
        recall(number<uint8_t>());
        return true;
      case 'j':
        recall(number<uint32_t>());
        return true;
      default:
        return false;
    }
  }

  bool structure(unsigned char code) {
    switch (code) {
      case '(':
        marks_.push_back(stack_.size());
        return true;
      case '}':
        push({.kind = Kind::dictionary});
        return true;
      case ']':
      case ')':
      case 0x8f:
        push({.kind = Kind::list});
        return true;
      case 't':
        push({.kind = Kind::list, .items = pop_mark()});
        return true;
      case 0x85:
      case 0x86:
      case 0x87:
        push_tuple(code - 0x84u);
        return true;
      case 's': {
        const PickleValue* value = pop();
        const PickleValue* key = pop();
        append_to(Kind::dictionary, {key, value});
        return true;
      }
      case 'u':
        append_to(Kind::dictionary, pop_mark());
        return true;
      case 'a':
        append_to(Kind::list, {pop()});
        return true;
      case 'e':
      case 0x90:
        append_to(Kind::list, pop_mark());
        return true;
      case 'Q':
        push({.kind = Kind::persistent, .items = {pop()}});
        return true;
      case 'R':
      case 0x81:  // makes an object of a class
        call();
        return true;
      case 'b':  // sets attributes, such as the _metadata of a state dict
        pop();
        top();
        return true;
      case '0':
        pop();
        return true;
      case '.':
        pickle_.root = pop();
        return true;
      default:
        return false;
    }
  }

  std::string_view bytes_;
  const std::string& place_;
  size_t at_ = 0;
  Pickle pickle_;
  std::vector<PickleValue*> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, PickleValue*> memo_;
};

}  // namespace

Pickle parse_pickle(std::string_view bytes, const std::string& place) {
  return Machine(bytes, place).run();
}

}  // namespace renkei::capture
