#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include "bindings.h"
#include "run_record.h"

namespace py = pybind11;

namespace renkei::python {

void bind_run_record(py::module_& module) {
  using Unlocked = py::call_guard<py::gil_scoped_release>;
  py::class_<RunRecord>(module, "RunRecord")
      .def(py::init<World&, const std::string&, const std::string&,
                    const std::map<std::string, std::string>&>(),
           py::arg("world"), py::arg("directory"), py::arg("label"), py::arg("settings"),
           py::keep_alive<1, 2>(), Unlocked())
      .def("set_plan", &RunRecord::set_plan, py::arg("json"))
      .def("begin_step", &RunRecord::begin_step, py::arg("samples"))
      .def("end_step", &RunRecord::end_step)
      .def("count_step", &RunRecord::count_step, py::arg("samples"), py::arg("seconds"))
      .def("add", &RunRecord::add, py::arg("name"), py::arg("category"), py::arg("begin"))
      .def_static("seconds", &RunRecord::seconds)
      .def("phase", &RunRecord::phase, py::arg("name"))
      .def("log", &RunRecord::log, py::arg("step"), py::arg("values"))
      .def("close", &RunRecord::close, Unlocked())
      .def_property_readonly("step", &RunRecord::step)
      .def_property_readonly("directory", &RunRecord::directory);
}

}  // namespace renkei::python
