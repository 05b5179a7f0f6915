#include "dense/hpl.h"

namespace renkei::dense {
namespace {

// From HPL 2.0, with what is around it.
constexpr const char* kOutput = R"(
HPLinpack 2.0  --  High-Performance Linpack benchmark  --   September 10, 2008
================================================================================
T/V                N    NB     P     Q               Time                 Gflops
--------------------------------------------------------------------------------
WR11C2R4        4000   128     1     2               0.75              5.701e+01
--------------------------------------------------------------------------------
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=        0.0032185 ...... PASSED
)";

TEST(Hpl, ItsResultIsRead) {
  const auto result = parse_hpl_output(kOutput);
  ASSERT_TRUE(result);
  EXPECT_DOUBLE_EQ(result->seconds, 0.75);
  EXPECT_DOUBLE_EQ(result->gflops, 57.01);
  EXPECT_DOUBLE_EQ(result->residual, 0.0032185);
  EXPECT_TRUE(result->passed);
}

TEST(Hpl, AFailureIsAFailure) {
  std::string output = kOutput;
  output.replace(output.find("0.0032185"), 9, "      nan");
  output.replace(output.find("PASSED"), 6, "FAILED");
  const auto result = parse_hpl_output(output);
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->passed);
}

TEST(Hpl, HalfAnOutputIsNone) {
  const std::string output = kOutput;
  EXPECT_FALSE(parse_hpl_output(""));
  EXPECT_FALSE(parse_hpl_output(output.substr(0, output.find("||Ax-b"))));
}

TEST(Hpl, TheInputHasTheGridAndTheBlocks) {
  const std::string input =
      hpl_input({.n = 4321, .block = 96, .grid = {.p = 3, .q = 5}, .column_major = true});
  for (const char* line : {"\n4321 ", "\n96 ", "\n3            Ps", "\n5            Qs",
                           "\n1            PMAP", "\n16.0 "})
    EXPECT_THAT(input, testing::HasSubstr(line));
}

}  // namespace
}  // namespace renkei::dense
