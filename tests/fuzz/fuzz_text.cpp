// A libFuzzer target; RENKEI_PARSE is one of the functions of parse_texts.h.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/parse_texts.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  renkei::expect_text_error_only(renkei::RENKEI_PARSE,
                                 {reinterpret_cast<const char*>(bytes), size});
  return 0;
}
