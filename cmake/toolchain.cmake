# Compiler cache, warnings, sanitizers.

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The sloppiness is what ccache's manual asks for with precompiled headers.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE})
endif()

# No debug information in the release: Torch's headers make 10 MB of it per object file. The dev
# preset has it.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

# Designated initialisers leave fields out on purpose: their defaults are the documentation.
add_compile_options(-Wall -Wextra -Werror -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # -Wrestrict of g++ 12 has false findings in std::string.
  add_compile_options(-fpch-preprocess -Wno-restrict)
endif()

# The Python module is a shared library of the same objects. Nobody replaces our functions by others of the
# same name, so they may still be inlined.
if(RENKEI_TORCH)
  add_compile_options(-fPIC -fno-semantic-interposition)
endif()

if(RENKEI_SANITIZE)
  # g++ 12 finds uninitialised memory in the standard library once it is instrumented.
  add_compile_options(-Wno-maybe-uninitialized)
  # -Og compiles instrumented code in 60 % of the time of -O1.
  add_compile_options(-fsanitize=${RENKEI_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all -Og -g1)
  add_link_options(-fsanitize=${RENKEI_SANITIZE})
  # Vector kernels for two instruction sets, the baseline and AVX2; the release tests all.
  add_compile_definitions("HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_SSE4|HWY_AVX3)")
endif()

if(RENKEI_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all)
  add_link_options(-fsanitize=address,undefined)
endif()
