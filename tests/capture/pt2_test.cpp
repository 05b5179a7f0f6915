#include "capture/pt2.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/thrown_error.h"
#include "tests/capture/sample_models.h"

namespace renkei::capture {
namespace {

using program::Argument;
using program::DType;
using program::Reference;
using testing::HasSubstr;

Pt2File read(const SampleModel& model) {
  return read_pt2(memory_file(model.bytes()));
}

std::string refusal(const SampleModel& model) {
  const Error error = test::thrown_error([&] { read(model); });
  EXPECT_EQ(error.code, ErrorCode::data) << error.message;
  EXPECT_FALSE(error.hint.empty()) << error.message;
  EXPECT_THAT(error.message, HasSubstr("net.pt2"));
  return error.message;
}

TEST(Pt2, NodesBecomeOperationsThatKnowWhereTheyWereWritten) {
  const Pt2File file = read({});
  ASSERT_EQ(file.program.ops.size(), 1u);
  const program::Op& op = file.program.ops[0];
  EXPECT_EQ(op.target, "aten.linear.default");
  EXPECT_EQ(op.module, "fc");
  EXPECT_EQ(op.source, "net.py:7 in forward");
  EXPECT_EQ(file.program.name, "net");
  EXPECT_EQ(file.program.inputs[0].name, "x");
  EXPECT_EQ(file.program.outputs[0].name, "output");
  EXPECT_TRUE(file.has_values);
}

TEST(Pt2, TheFirstSizeOfTheInputIsTheBatch) {
  const program::Program program = read({}).program;
  ASSERT_EQ(program.symbols.size(), 1u);
  EXPECT_EQ(program.symbols[0].name, "batch");
  EXPECT_TRUE(program.symbols[0].batch);
  EXPECT_EQ(program.symbols[0].low, 1);
  EXPECT_EQ(program.value(program.outputs[0].value).sizes[0].str(), "batch");
}

TEST(Pt2, WeightsAreReadInPieces) {
  const Pt2File file = read({});
  EXPECT_EQ(file.program.state[0].name, "fc.weight");
  EXPECT_TRUE(file.program.state[0].trainable);
  EXPECT_EQ(file.tensors[0].read_all(), float_bytes({1, 2, 3, 4, 5, 6}));
  std::string piece(7, ' ');
  file.tensors[0].read(5, piece);
  EXPECT_EQ(piece, float_bytes({1, 2, 3, 4, 5, 6}).substr(5, 7));
}

TEST(Pt2, WeightsThatAreNotInRowMajorOrderAreGathered) {
  SampleModel model;
  model.weights["fc.weight"]["tensor_meta"] = tensor_meta({2, 3}, true, {1, 2});
  const Pt2File file = read(model);
  const std::string expected = float_bytes({1, 3, 5, 2, 4, 6});
  EXPECT_EQ(file.tensors[0].read_all(), expected);
  for (size_t begin = 0; begin < expected.size(); ++begin) {
    std::string piece(expected.size() - begin, ' ');
    file.tensors[0].read(static_cast<int64_t>(begin), piece);
    EXPECT_EQ(piece, expected.substr(begin));
  }
}

TEST(Pt2, TiedWeightsAreOneStateWithTwoNames) {
  SampleModel model;
  model.graph["inputs"].push_back(tensor_argument("p_v"));
  model.graph["tensor_values"]["p_v"] = tensor_meta({2, 3}, true);
  model.input_specs.push_back(
      {{"parameter", {{"arg", {{"name", "p_v"}}}, {"parameter_name", "head.weight"}}}});
  model.weights["head.weight"] = model.weights["fc.weight"];
  const Pt2File file = read(model);
  ASSERT_EQ(file.program.state.size(), 1u);
  EXPECT_THAT(file.program.state[0].aliases, testing::ElementsAre("head.weight"));
  EXPECT_EQ(file.tensors.size(), 1u);
}

TEST(Pt2, TiesThatTheWriterNotedMustFit) {
  SampleModel model;
  model.weight_bytes.clear();
  model.graph["inputs"].push_back(tensor_argument("p_v"));
  model.input_specs.push_back(
      {{"parameter", {{"arg", {{"name", "p_v"}}}, {"parameter_name", "head.weight"}}}});
  const auto read_with = [&](int64_t rows) {
    model.graph["tensor_values"]["p_v"] = tensor_meta({rows, 3}, true);
    Members members = model.members();
    members.emplace_back("net/extra/renkei.json", R"({"tied": {"head.weight": "fc.weight"}})");
    return read_pt2(memory_file(data::zip(members, false)));
  };
  EXPECT_THAT(read_with(2).program.state[0].aliases, testing::ElementsAre("head.weight"));
  EXPECT_THAT(test::thrown_error([&] { read_with(4); }).message, HasSubstr("'head.weight'"));
}

TEST(Pt2, AFileWithoutValuesStillGivesTheProgram) {
  SampleModel model;
  model.weight_bytes.clear();
  const Pt2File file = read(model);
  EXPECT_FALSE(file.has_values);
  EXPECT_FALSE(file.tensors[0].has_values());
  EXPECT_THAT(file.tensors[0].sizes, testing::ElementsAre(2, 3));
}

TEST(Pt2, ArgumentsOfEveryKindKeepTheirMeaning) {
  SampleModel model;
  const auto add = [&](const std::string& name, json argument) {
    model.graph["nodes"][0]["inputs"].push_back(named_argument(name, std::move(argument)));
  };
  add("none", {{"as_none", true}});
  add("ints", {{"as_ints", {1, -2}}});
  add("infinite", {{"as_float", "-Infinity"}});
  add("mixed", {{"as_sym_ints", {{{"as_int", 3}}, {{"as_int", 4}}}}});
  add("type", {{"as_scalar_type", 13}});
  add("device", {{"as_device", {{"type", "cuda"}, {"index", 1}}}});
  add("layout", {{"as_layout", 7}});
  add("format", {{"as_memory_format", 2}});
  add("optional", {{"as_optional_tensors", {{{"as_none", true}}, tensor_argument("x")}}});
  const program::Program program = read(model).program;
  const program::Op& op = program.ops[0];
  const auto value = [&](const char* name) { return *program::find_argument(op, name); };
  EXPECT_EQ(value("none"), Argument(program::None{}));
  EXPECT_EQ(value("ints"), Argument(program::List{int64_t{1}, int64_t{-2}}));
  EXPECT_EQ(value("infinite"), Argument(-std::numeric_limits<double>::infinity()));
  EXPECT_EQ(value("mixed"), Argument(program::List{int64_t{3}, int64_t{4}}));
  EXPECT_EQ(value("type"), Argument(DType::bf16));
  EXPECT_EQ(value("device"), Argument(program::Word{"cuda:1"}));
  EXPECT_EQ(value("layout"), Argument(program::Word{"strided"}));
  EXPECT_EQ(value("format"), Argument(program::Word{"channels_last"}));
  EXPECT_EQ(value("optional"),
            Argument(program::List{program::None{}, Reference{program.inputs[0].value}}));
}

SampleModel with_wrapper(const std::string& name, const std::vector<json>& before) {
  SampleModel model;
  json inner = model.graph;
  inner["inputs"] = {tensor_argument("x"), tensor_argument("p_w")};
  std::vector<json> arguments = before;
  arguments.push_back(named_argument("", {{"as_graph", {{"name", "sub"}, {"graph", inner}}}}));
  arguments.push_back(named_argument("", tensor_argument("x")));
  arguments.push_back(named_argument("", tensor_argument("p_w")));
  model.graph["nodes"] = {
      node("torch.ops.higher_order." + name, arguments, {tensor_argument("getitem")})};
  model.graph["outputs"] = {tensor_argument("getitem")};
  model.graph["tensor_values"]["getitem"] = tensor_meta({kBatchSymbol, 2});
  model.output_specs = {{{"user_output", {{"arg", tensor_argument("getitem")}}}}};
  return model;
}

TEST(Pt2, WhatIsUnderNoGradIsMarked) {
  for (const bool enabled : {false, true}) {
    const program::Program program =
        read(with_wrapper("wrap_with_set_grad_enabled",
                          {named_argument("", {{"as_bool", enabled}})}))
            .program;
    ASSERT_EQ(program.ops.size(), 1u);
    EXPECT_EQ(program.ops[0].no_grad, !enabled);
    EXPECT_EQ(program.outputs[0].value, program.ops[0].outputs[0]);
  }
}

TEST(Pt2, CheckpointsAreDissolved) {
  EXPECT_EQ(read(with_wrapper("tag_activation_checkpoint", {})).program.ops.size(), 1u);
}

TEST(Pt2, BranchesOnValuesAreRefusedWithTheirLine) {
  EXPECT_THAT(refusal(with_wrapper("cond", {})),
              testing::AllOf(HasSubstr("'cond'"), HasSubstr("net.py:7 in forward")));
}

TEST(Pt2, WrittenBuffersOfAGraphWithoutWritesAreCopiedBack) {
  SampleModel model;
  model.input_specs[0] = {
      {"buffer", {{"arg", {{"name", "p_w"}}}, {"buffer_name", "mean"}, {"persistent", true}}}};
  model.weights = {{"mean", model.weights["fc.weight"]}};
  model.output_specs.push_back(
      {{"buffer_mutation", {{"arg", {{"name", "y"}}}, {"buffer_name", "mean"}}}});
  const program::Program program = read(model).program;
  ASSERT_EQ(program.ops.size(), 2u);
  EXPECT_EQ(program.ops[1].target, "aten.copy_.default");
  EXPECT_EQ(*program::find_argument(program.ops[1], "self"),
            Argument(Reference{program.state[0].value}));
}

TEST(Pt2, NamesOfOutputsAreTheKeysOfWhatForwardReturned) {
  SampleModel model;
  model.out_spec =
      R"([1, {"type": "builtins.dict", "context": "[\"logits\"]", "children_spec": [{"type": null, "context": null, "children_spec": []}]}])";
  EXPECT_EQ(read(model).program.outputs[0].name, "logits");
}

TEST(Pt2, NoneAmongTheOutputsIsLeftOut) {
  SampleModel model;
  model.output_specs.push_back({{"user_output", {{"arg", {{"as_none", true}}}}}});
  EXPECT_EQ(read(model).program.outputs.size(), 1u);
}

TEST(Pt2, TheProgramOfEvaluationHasTheSameState) {
  const SampleModel model;
  Members members = model.members();
  for (const auto& [name, content] : model.members("evaluation"))
    if (name.find("evaluation") != std::string::npos) members.emplace_back(name, content);
  const Pt2File file = read_pt2(memory_file(data::zip(members, false)));
  ASSERT_TRUE(file.evaluation.has_value());
  EXPECT_EQ(file.evaluation->state[0].name, "fc.weight");
  EXPECT_EQ(file.evaluation_tensors[0].read_all(), file.tensors[0].read_all());
}

TEST(Pt2, AnEvaluationWithOtherParametersIsRefused) {
  SampleModel other;
  other.input_specs[0]["parameter"]["parameter_name"] = "fc.other";
  other.weights = {{"fc.other", other.weights["fc.weight"]}};
  Members members = SampleModel().members();
  for (const auto& [name, content] : other.members("evaluation"))
    if (name.find("evaluation") != std::string::npos) members.emplace_back(name, content);
  const Error error = test::thrown_error([&] { read_pt2(memory_file(data::zip(members, false))); });
  EXPECT_THAT(error.message, HasSubstr("'fc.other' is part of the evaluation"));
}

TEST(Pt2, WeightsThatDoNotFitTheirBytesAreRefused) {
  SampleModel shorter;
  shorter.weight_bytes.resize(20);
  EXPECT_THAT(refusal(shorter),
              HasSubstr("'fc.weight' has 24 bytes, which do not fit into the 20"));
  SampleModel beyond;
  beyond.weights["fc.weight"]["tensor_meta"] = tensor_meta({2, 3}, true, {3, 1}, 1);
  EXPECT_THAT(refusal(beyond), HasSubstr("do not fit"));
  SampleModel huge;
  huge.weights["fc.weight"]["tensor_meta"] = tensor_meta({2, 3}, true, {INT64_MAX, INT64_MAX});
  EXPECT_THAT(refusal(huge), HasSubstr("do not fit"));
}

TEST(Pt2, WeightsThatDifferFromTheGraphAreRefused) {
  SampleModel model;
  model.weights["fc.weight"]["tensor_meta"] = tensor_meta({3, 2}, true);
  EXPECT_THAT(refusal(model), HasSubstr("differ"));
}

TEST(Pt2, WhatNeedsPickleIsRefused) {
  SampleModel model;
  model.weights["fc.weight"]["use_pickle"] = true;
  EXPECT_THAT(refusal(model), HasSubstr("pickle"));
}

TEST(Pt2, TypesAndLayoutsThatAreNotComputedAreNamed) {
  SampleModel eight_bits;
  eight_bits.graph["tensor_values"]["y"]["dtype"] = 29;
  EXPECT_THAT(refusal(eight_bits), HasSubstr("float8_e4m3fn"));
  SampleModel sparse;
  sparse.graph["tensor_values"]["y"]["layout"] = 2;
  EXPECT_THAT(refusal(sparse), HasSubstr("sparse_csr"));
}

TEST(Pt2, NewerFormatsAreRefused) {
  SampleModel model;
  model.schema_major = 9;
  EXPECT_THAT(refusal(model), HasSubstr("version 9"));
}

TEST(Pt2, ChangedInputsAndBackwardGraphsAreNamed) {
  SampleModel model;
  model.output_specs.push_back(
      {{"user_input_mutation", {{"arg", {{"name", "y"}}}, {"user_input_name", "x"}}}});
  EXPECT_THAT(refusal(model), HasSubstr("changes its input 'x'"));
  model.output_specs[1] = {
      {"gradient_to_parameter", {{"arg", {{"name", "y"}}}, {"parameter_name", "fc.weight"}}}};
  EXPECT_THAT(refusal(model), HasSubstr("backward"));
}

TEST(Pt2, ParametersThatShareSomeElementsAreRefused) {
  SampleModel model;
  model.weight_bytes = float_bytes(std::vector<float>(10, 1));
  model.graph["inputs"].push_back(tensor_argument("p_v"));
  model.graph["tensor_values"]["p_v"] = tensor_meta({2, 3}, true);
  model.input_specs.push_back(
      {{"parameter", {{"arg", {{"name", "p_v"}}}, {"parameter_name", "head.weight"}}}});
  model.weights["head.weight"] = model.weights["fc.weight"];
  model.weights["head.weight"]["tensor_meta"] = tensor_meta({2, 3}, true, {3, 1}, 3);
  EXPECT_THAT(refusal(model), HasSubstr("'head.weight' shares a part of its memory"));
}

TEST(Pt2, OtherFilesAreToldApart) {
  const auto message = [](std::string bytes) {
    return test::thrown_error([&] { read_pt2(memory_file(std::move(bytes))); }).message;
  };
  EXPECT_THAT(message("no zip file"), HasSubstr("not a file that PyTorch wrote"));
  EXPECT_THAT(message(data::zip({{"a/constants.pkl", ""}, {"a/data.pkl", ""}}, false)),
              HasSubstr("TorchScript"));
  EXPECT_THAT(message(data::zip({{"a/data.pkl", ""}}, false)), HasSubstr("state dict"));
  EXPECT_THAT(message(data::zip(SampleModel().members(), true)), HasSubstr("compressed"));
  Members big = SampleModel().members();
  big.back().second = "big";
  EXPECT_THAT(message(data::zip(big, false)), HasSubstr("byte order"));
}

TEST(Pt2, DeepNestingIsRefused) {
  Members members = SampleModel().members();
  members[0].second = std::string(100'000, '[');
  EXPECT_THAT(test::thrown_error([&] { read_pt2(memory_file(data::zip(members, false))); }).message,
              HasSubstr("too deep"));
}

}  // namespace
}  // namespace renkei::capture
