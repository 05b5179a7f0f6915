// The extension renkei._engine: what Python calls of the engine. Nothing is decided here.
#include <torch/csrc/utils/pybind.h>
#include <torch/version.h>

#include "base/error.h"
#include "base/version.h"
#include "bindings.h"

namespace py = pybind11;

namespace renkei::python {
namespace {

// Renkei's sentences as exceptions of renkei.errors, with their hint.
void translate(std::exception_ptr pointer) {
  try {
    if (pointer) std::rethrow_exception(pointer);
  } catch (const Error& error) {
    const py::object kind = py::module_::import("renkei.errors").attr("RenkeiError");
    const py::object made =
        kind(error.message, py::arg("hint") = error.hint,
             py::arg("code") = std::string(name_of(error.code)), py::arg("rank") = error.rank,
             py::arg("host") = error.host, py::arg("step") = error.step);
    PyErr_SetObject(kind.ptr(), made.ptr());
  }
}

}  // namespace
}  // namespace renkei::python

PYBIND11_MODULE(_engine, module) {
  using namespace renkei::python;
  module.doc() = "Renkei's engine";
  module.attr("version") = renkei::kVersion;
  module.attr("torch_version") = TORCH_VERSION;
  py::register_exception_translator(translate);
  bind_world(module);
  bind_backend(module);
  bind_batches(module);
  bind_checkpoint(module);
  bind_replicas(module);
  bind_run_record(module);
  bind_staged_model(module);
  bind_staged_training(module);
  bind_compiled_graph(module);
}
