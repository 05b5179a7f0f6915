#include "compute/convolution.h"

#include <map>

#include "compute/onednn/loader.h"
#include "compute/relu.h"

namespace renkei::compute {

double ConvolutionShape::flops() const {
  return 2.0 * static_cast<double>(output().count()) *
         static_cast<double>(in_channels / groups * kernel_height * kernel_width);
}

Convolution::Convolution(const ConvolutionShape& shape)
    : outputs_(shape.output().count()), kernels_(onednn::module().convolution(shape)) {}

Convolution::~Convolution() = default;

void Convolution::forward(const float* input, const float* weights, const float* bias, bool relu,
                          float* output) {
  kernels_->forward(input, weights, bias, output);
  // Not by oneDNN while it has the values at hand: its ReLU makes 0 of what is not a number.
  if (relu) relu_in_place(outputs_, output);
}

void Convolution::backward_input(const float* output_gradient, const float* weights,
                                 float* input_gradient) {
  kernels_->backward_input(output_gradient, weights, input_gradient);
}

void Convolution::backward_weights(const float* input, const float* output_gradient, Write write,
                                   float* weight_gradient) {
  kernels_->backward_weights(input, output_gradient, write, weight_gradient);
}

Convolution& convolution_for(const ConvolutionShape& shape) {
  // One set for each thread: tests run ranks as threads.
  static thread_local std::map<ConvolutionShape, Convolution> made;
  return made.try_emplace(shape, shape).first->second;
}

}  // namespace renkei::compute
