// The program of one rank: the exchanges in it.
#include "shard/shard.h"

#include <gtest/gtest.h>

#include "program/builder.h"
#include "program/work.h"

namespace renkei::shard {
namespace {

using program::Builder;
using program::DType;
using program::Op;
using program::ValueId;

ValueId weight(Builder& builder, const char* name, std::vector<int64_t> sizes) {
  return builder.parameter(name, std::move(sizes),
                           {.kind = program::Initial::Kind::normal, .b = 1});
}

const Op* maker_of(const program::Program& program, ValueId value) {
  for (const Op& op : program.ops)
    if (op.outputs.front() == value) return &op;
  return nullptr;
}

TEST(Shard, AConversionMadeWithoutGradientsServesThoseThatNeedThem) {
  Builder builder("two users");
  const ValueId x = weight(builder, "x", {4, 8});
  const ValueId first = builder.linear(x, weight(builder, "a", {8, 8}), program::kNoValue);
  const ValueId second = builder.linear(x, weight(builder, "b", {8, 8}), program::kNoValue);
  builder.output("first", first);
  builder.output("second", second);
  program::Program program = builder.finish();
  program.ops.front().no_grad = true;
  Choice choice;
  for (const Op& op : program.ops) choice[key_of(program, op)] = "column";
  const Sharded sharded =
      shard(program, {.part = {.parts = 2}, .choice = choice, .pins = parse_pins("x=none")});
  int copies = 0;
  for (const Op& op : sharded.program.ops) {
    copies += op.target == "renkei.tp_copy.default";
    EXPECT_FALSE(is_exchange(op) && op.no_grad) << op.target;
  }
  EXPECT_EQ(copies, 1);
}

// Two tables say what exchanges cost: by layouts where they are chosen, by names where a program's
// work is counted.
TEST(Shard, TheWorkOfAnExchangeIsWhatItWasChosenBy) {
  struct Conversion {
    Layout from, to;
    const char* producer;  // strategy of the operation before
    const char* user;      // and behind
  };
  const Conversion conversions[]{
      {kWhole, kCopied, "whole", "column"},       {kWhole, split(1), "whole", "row"},
      {split(1), kWhole, "column", "whole"},      {split(1), kCopied, "column", "column"},
      {kPartial, kWhole, "row", "whole"},         {kPartial, split(1), "row", "row"},
      {kPartial, split(0), "row", "rows split 0"}};
  for (const Conversion& conversion : conversions) {
    Builder builder("two layers");
    const ValueId x = weight(builder, "x", {4, 8});
    const ValueId middle = builder.linear(x, weight(builder, "a", {8, 8}), program::kNoValue);
    builder.output("out", builder.linear(middle, weight(builder, "b", {8, 8}), program::kNoValue));
    const program::Program program = builder.finish();
    Choice choice;
    if (conversion.producer != std::string("whole"))
      choice[key_of(program, program.ops[0])] = conversion.producer;
    if (conversion.user != std::string("whole"))
      choice[key_of(program, program.ops[1])] = conversion.user;
    const Sharded sharded = shard(program, {.part = {.parts = 2}, .choice = choice});
    const std::string name = name_of(conversion.from) + " to " + name_of(conversion.to);
    // What the second layer takes.
    const Op* user = nullptr;
    for (const Op& op : sharded.program.ops)
      if (op.target == "aten.linear.default") user = &op;
    const Op* made = maker_of(sharded.program, program::references(*user).front());
    ASSERT_TRUE(made && is_exchange(*made)) << name;
    const program::Work work = program::work_of(sharded.program, *made, {});
    const Halves halves = halves_of({conversion.from, conversion.to});
    EXPECT_EQ(work.exchange_forward.halves, halves.forward) << name;
    EXPECT_EQ(work.exchange_backward.halves, halves.backward) << name;
  }
}

}  // namespace
}  // namespace renkei::shard
