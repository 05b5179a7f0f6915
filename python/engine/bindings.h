// The parts of the extension, each in the file of its name.
#pragma once

#include <pybind11/pybind11.h>

namespace renkei::python {

void bind_backend(pybind11::module_& module);
void bind_batches(pybind11::module_& module);
void bind_checkpoint(pybind11::module_& module);
void bind_compiled_graph(pybind11::module_& module);
void bind_replicas(pybind11::module_& module);
void bind_run_record(pybind11::module_& module);
void bind_staged_model(pybind11::module_& module);
void bind_staged_training(pybind11::module_& module);
void bind_world(pybind11::module_& module);

}  // namespace renkei::python
