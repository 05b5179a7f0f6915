// What Renkei uses of oneDNN, as a module that is loaded at its first use (onednn/loader.h).
//
// libtorch_cpu.so has a oneDNN of its own inside, of another version, whose weak symbols have the
// same names; linked into one program, the two call each other and break. So all code that calls
// oneDNN is in renkei_onednn.so, which hides its symbols and is opened in a scope of its own.
// Through this interface only plain pointers and shapes cross the border, and errors leave it as
// Error.
#pragma once

#include <memory>

#include "compute/convolution.h"
#include "compute/matrix_product.h"

namespace renkei::compute::onednn {

// As Convolution (compute/convolution.h), for one shape and without a ReLU. To be used by one
// thread at a time.
class ConvolutionKernels {
 public:
  virtual ~ConvolutionKernels() = default;
  virtual void forward(const float* input, const float* weights, const float* bias,
                       float* output) = 0;
  virtual void backward_input(const float* output_gradient, const float* weights,
                              float* input_gradient) = 0;
  virtual void backward_weights(const float* input, const float* output_gradient, Write write,
                                float* weight_gradient) = 0;
};

class Module {
 public:
  virtual ~Module() = default;
  virtual std::unique_ptr<ConvolutionKernels> convolution(const ConvolutionShape& shape) const = 0;
  virtual void multiply(const MatrixProduct& product, const float* a, const float* b,
                        float* c) const = 0;
};

// What the module gets from the program: memory for the duration of a kernel (compute/scratch.h).
struct Host {
  float* (*scratch)(size_t count, int slot);
};

// The module's one visible symbol: its kernels, or null where the processor is too old for them.
inline constexpr char kEntryName[] = "renkei_onednn";
using Entry = const Module* (*)(const Host& host);

}  // namespace renkei::compute::onednn
