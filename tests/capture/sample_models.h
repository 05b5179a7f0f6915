// Small .pt2 files, safetensors files and state dicts, as bytes. What torch.export writes is in
// pt2_test.py; these have just what a test asks for.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/data/memory_file.h"
#include "tests/data/source/sample_files.h"

namespace renkei::capture {

using nlohmann::json;
using Members = std::vector<std::pair<std::string, std::string>>;

inline std::shared_ptr<const data::ByteFile> memory_file(std::string bytes) {
  return std::make_shared<data::MemoryFile>(std::move(bytes), "net.pt2");
}

inline std::string float_bytes(const std::vector<float>& values) {
  return data::as_bytes(values);
}

// {"as_int": …} for numbers, {"as_expr": …} for texts.
inline json sym_int(const json& size) {
  if (size.is_number()) return {{"as_int", size}};
  return {{"as_expr", {{"expr_str", size}, {"hint", {{"as_int", 4}}}}}};
}

inline json tensor_meta(const std::vector<json>& sizes, bool requires_grad = false,
                        std::vector<int64_t> strides = {}, int64_t offset = 0) {
  json meta{{"dtype", 7},
            {"sizes", json::array()},
            {"requires_grad", requires_grad},
            {"device", {{"type", "cpu"}, {"index", nullptr}}},
            {"strides", json::array()},
            {"storage_offset", {{"as_int", offset}}},
            {"layout", 7}};
  for (const json& size : sizes) meta["sizes"].push_back(sym_int(size));
  if (strides.empty()) {
    strides.assign(sizes.size(), 1);
    for (size_t i = sizes.size(); i-- > 1;)
      strides[i - 1] = strides[i] * (sizes[i].is_number() ? sizes[i].get<int64_t>() : 4);
  }
  for (const int64_t stride : strides) meta["strides"].push_back(sym_int(stride));
  return meta;
}

inline json tensor_argument(const std::string& name) {
  return {{"as_tensor", {{"name", name}}}};
}

inline json named_argument(const std::string& name, json argument) {
  return {{"name", name}, {"arg", std::move(argument)}, {"kind", 1}};
}

inline json node(const std::string& target, std::vector<json> inputs, std::vector<json> outputs) {
  return {{"target", target},
          {"inputs", std::move(inputs)},
          {"outputs", std::move(outputs)},
          {"metadata",
           {{"stack_trace",
             "File \"/home/u/net.py\", line 7, in forward\n    y = f(x)\n"
             "  File \"/usr/lib/python3/dist-packages/torch/nn/f.py\", line 9, in g"},
            {"nn_module_stack", "L__self__,,net.Net;L__self__fc,fc,torch.nn.Linear"}}}};
}

constexpr const char* kBatchSymbol = "Symbol('s77', positive=True, integer=True)";

// y = linear(x, fc.weight), with a weight of 2×3.
struct SampleModel {
  json graph{{"inputs", {tensor_argument("p_w"), tensor_argument("x")}},
             {"outputs", {tensor_argument("y")}},
             {"nodes",
              {node("torch.ops.aten.linear.default",
                    {named_argument("input", tensor_argument("x")),
                     named_argument("weight", tensor_argument("p_w"))},
                    {tensor_argument("y")})}},
             {"tensor_values",
              {{"p_w", tensor_meta({2, 3}, true)},
               {"x", tensor_meta({kBatchSymbol, 3})},
               {"y", tensor_meta({kBatchSymbol, 2})}}},
             {"sym_int_values", json::object()},
             {"sym_bool_values", json::object()}};
  json input_specs{{{"parameter", {{"arg", {{"name", "p_w"}}}, {"parameter_name", "fc.weight"}}}},
                   {{"user_input", {{"arg", tensor_argument("x")}}}}};
  json output_specs{{{"user_output", {{"arg", tensor_argument("y")}}}}};
  json weights{{"fc.weight",
                {{"path_name", "weight_0"},
                 {"is_param", true},
                 {"use_pickle", false},
                 {"tensor_meta", tensor_meta({2, 3}, true)}}}};
  std::string weight_bytes = float_bytes({1, 2, 3, 4, 5, 6});
  std::string out_spec = R"([1, {"type": null, "context": null, "children_spec": []}])";
  int schema_major = 8;

  std::string model_json() const {
    const json model{
        {"graph_module",
         {{"graph", graph},
          {"signature", {{"input_specs", input_specs}, {"output_specs", output_specs}}},
          {"module_call_graph", {{{"fqn", ""}, {"signature", {{"out_spec", out_spec}}}}}}}},
        {"range_constraints", {{"s77", {{"min_val", 2}, {"max_val", nullptr}}}}},
        {"schema_version", {{"major", schema_major}, {"minor", 20}}},
        {"torch_version", "2.13.0"}};
    return model.dump();
  }

  Members members(const std::string& name = "model") const {
    return {{"net/models/" + name + ".json", model_json()},
            {"net/data/weights/" + name + "_weights_config.json", json{{"config", weights}}.dump()},
            {"net/data/constants/" + name + "_constants_config.json", R"({"config": {}})"},
            {"net/data/weights/weight_0", weight_bytes},
            {"net/byteorder", "little"}};
  }

  std::string bytes() const { return data::zip(members(), false); }
};

// {"a": tensor of 2×2 floats}, as torch.save writes it.
inline std::string pickled_tensor(const std::string& storage = "FloatStorage") {
  const auto text = [](const std::string& value) {
    return "X" + data::little_endian(static_cast<uint32_t>(value.size())) + value;
  };
  return "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") + "ctorch\n" + storage + "\n" +
         text("0") + text("cpu") + "K\x04tQK" + std::string(1, '\0') +
         "K\x02K\x02\x86K\x02K\x01\x86\x89" + "ccollections\nOrderedDict\n)RtR";
}

inline std::string pickled_dictionary(
    const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string all = "}(";
  for (const auto& [name, value] : entries)
    all += "X" + data::little_endian(static_cast<uint32_t>(name.size())) + name + value;
  return all + "u";
}

inline std::string state_dict_file(const std::string& pickle, const Members& further = {}) {
  Members members{{"net/data.pkl", "\x80\x02" + pickle + "."},
                  {"net/byteorder", "little"},
                  {"net/data/0", float_bytes({1, 2, 3, 4})}};
  members.insert(members.end(), further.begin(), further.end());
  return data::zip(members, false);
}

inline std::string safetensors_file(const std::string& header, const std::string& content) {
  return data::little_endian(static_cast<uint64_t>(header.size())) + header + content;
}

}  // namespace renkei::capture
