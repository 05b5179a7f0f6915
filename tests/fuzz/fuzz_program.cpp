// A libFuzzer target for the JSON form of programs, and for the expressions of their sizes.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/parse_program.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  renkei::expect_no_other_error(renkei::program::parse_program,
                                {reinterpret_cast<const char*>(bytes), size});
  return 0;
}
