// A libFuzzer target; RENKEI_PARSE is one of the functions of parse.h.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/parse.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace renkei::data;
  expect_no_other_error(RENKEI_PARSE, {reinterpret_cast<const char*>(bytes), size});
  return 0;
}
