#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include "bindings.h"
#include "run_record.h"
#include "staged_training.h"

namespace py = pybind11;

namespace renkei::python {

void bind_staged_training(py::module_& module) {
  using Unlocked = py::call_guard<py::gil_scoped_release>;
  module.def(
      "ops_of",
      [](std::string text, std::vector<std::pair<std::string, std::string>> tied,
         const std::map<std::string, std::string>& settings) {
        return ops_of(CapturedModel{std::move(text), std::move(tied), {}}, settings);
      },
      py::arg("text"), py::arg("tied"), py::arg("settings"), Unlocked());
  py::class_<StagedTraining>(module, "StagedTraining")
      .def(py::init([](World& world, std::string text,
                       std::vector<std::pair<std::string, std::string>> tied, NamedTensors state,
                       const NamedTensors& batch,
                       const std::map<std::string, std::string>& settings, RunRecord* record) {
             return std::make_unique<StagedTraining>(
                 world, CapturedModel{std::move(text), std::move(tied), std::move(state)}, batch,
                 settings, record ? record->file() : nullptr);
           }),
           py::arg("world"), py::arg("text"), py::arg("tied"), py::arg("state"), py::arg("batch"),
           py::arg("settings"), py::arg("record") = nullptr, py::keep_alive<1, 2>(),
           py::keep_alive<1, 8>(), Unlocked())
      .def("step", &StagedTraining::step, py::arg("batch"), Unlocked())
      .def("fetch", &StagedTraining::fetch, py::arg("name"), Unlocked())
      .def("close", &StagedTraining::close, Unlocked())
      .def_property_readonly("plan", &StagedTraining::plan)
      .def_property_readonly("names", &StagedTraining::names)
      .def_property_readonly("held", &StagedTraining::held);
}

}  // namespace renkei::python
