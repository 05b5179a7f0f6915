#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include "bindings.h"
#include "compiled_graph.h"

namespace py = pybind11;

namespace renkei::python {

void bind_compiled_graph(py::module_& module) {
  using Unlocked = py::call_guard<py::gil_scoped_release>;
  py::class_<CompiledGraph>(module, "CompiledGraph")
      .def(py::init([](std::string text, std::vector<std::pair<std::string, std::string>> tied,
                       std::vector<std::string> names, bool training, bool inputs_need_gradients,
                       const std::map<std::string, std::string>& settings) {
             return std::make_unique<CompiledGraph>(
                 CompiledGraph::Source{std::move(text), std::move(tied), std::move(names)},
                 CompiledGraph::Use{training, inputs_need_gradients}, settings);
           }),
           py::arg("text"), py::arg("tied"), py::arg("names"), py::arg("training"),
           py::arg("inputs_need_gradients"), py::arg("settings"), Unlocked())
      .def("run", &CompiledGraph::run, py::arg("tensors"), Unlocked())
      .def_property_readonly("rewrites", &CompiledGraph::rewrites)
      .def_property_readonly("operations", &CompiledGraph::operations);
}

}  // namespace renkei::python
