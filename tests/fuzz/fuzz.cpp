// A libFuzzer target; RENKEI_PARSE is one of the functions of parse.h or parse_models.h.
#include <cstddef>
#include <cstdint>

#ifdef RENKEI_FUZZ_MODELS
#include "tests/fuzz/parse_models.h"
using namespace renkei::capture;
#else
#include "tests/fuzz/parse.h"
using namespace renkei::data;
#endif

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  renkei::expect_no_other_error(RENKEI_PARSE, {reinterpret_cast<const char*>(bytes), size});
  return 0;
}
