// A program as a text for people, an operation a line, as `renkei model show --ops` prints it:
//
//   %12 f32[batch, 64, 112, 112] = aten.conv2d(%x, conv1.weight, stride=[2, 2])  # conv1,
//   resnet.py:143
#pragma once

#include <string>

#include "program/program.h"

namespace renkei::program {

std::string print(const Value& value);                    // "f32[batch, 64]"; "integer"
std::string print(const Program& program, const Op& op);  // one line, without its end
std::string print(const Program& program);                // inputs, all operations, outputs

}  // namespace renkei::program
