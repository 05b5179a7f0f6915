// A program as a JSON text, for run directories, other tools and people with an editor.
//
//   {"format": "renkei program", "version": 1, "name": "resnet50",
//    "symbols": [{"name": "batch", "batch": true}],
//    "values": [{"name": "x", "dtype": "f32", "sizes": ["batch", 3, 224, 224]}, …],
//    "state": [{"name": "conv1.weight", "kind": "parameter", "value": 1, "initial": {…}}, …],
//    "inputs": [{"name": "x", "value": 0}], "outputs": […],
//    "ops": [{"target": "aten.conv2d.default", "arguments": [["input", {"value": 0}], …],
//             "outputs": [2], "module": "conv1", "source": "resnet.py:143 in forward"}, …]}
//
// Arguments: null, true, whole numbers, "text" and lists are themselves; a real number has a point
// or an exponent; {"value": 3} is a reference; {"dtype": "f32"}, {"word": "cpu"} and {"real":
// "inf"} are what JSON has no way to write. What has its default is left out.
#pragma once

#include <string>
#include <string_view>

#include "program/program.h"

namespace renkei::program {

std::string to_json(const Program& program);  // one line for each op and value

// The program in the text, checked (program.h). Throws a data Error that names the place in `file`:
// for another format, a newer version, an unknown key, or a program that does not hold together.
Program from_json(std::string_view text, const std::string& file);

}  // namespace renkei::program
