// Where an operation was written, from what torch.export notes at each node.
#pragma once

#include <string>
#include <string_view>

namespace renkei::capture {

// "L__self__,,net.Net;L__self__conv,conv,torch.nn.Conv2d" is "conv": the innermost module.
std::string module_from_stack(std::string_view nn_module_stack);

// "resnet.py:143 in forward": the last line of a Python stack trace that is not PyTorch's own.
// Empty: there is none.
std::string source_from_trace(std::string_view stack_trace);

}  // namespace renkei::capture
