#include "backend/work.h"

namespace renkei::python {

BackendWork::BackendWork(int rank, c10d::OpType type, std::vector<at::Tensor> outputs,
                         uint64_t sequence)
    : Work(rank, type),
      outputs_(std::move(outputs)),
      sequence_(sequence),
      future_(
          c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()))) {
}

void BackendWork::complete(std::exception_ptr failure) {
  const at::NoGradGuard no_grad;
  // Who waits for the work must find the future done.
  if (failure)
    future_->setError(failure);
  else
    future_->markCompleted(at::IValue(outputs_));
  finish(std::move(failure));
}

}  // namespace renkei::python
