#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include "bindings.h"
#include "world.h"

namespace py = pybind11;

namespace renkei::python {

void bind_world(py::module_& module) {
  using Unlocked = py::call_guard<py::gil_scoped_release>;
  module.def("mpi_library", &comm::mpi_library);
  py::class_<World>(module, "World")
      .def(py::init<double>(), py::arg("timeout_seconds"), Unlocked())
      .def_property_readonly("rank", &World::rank)
      .def_property_readonly("size", &World::size)
      .def_property_readonly("local_rank", &World::local_rank)
      .def_property_readonly("local_size", &World::local_size)
      .def_property_readonly("host", &World::host)
      .def_property_readonly("threads", &World::threads)
      .def("barrier", &World::barrier, py::arg("operation"), Unlocked())
      .def("allreduce", &World::allreduce, py::arg("tensor"), py::arg("reduction"),
           py::arg("operation"), Unlocked())
      .def("broadcast", &World::broadcast, py::arg("tensor"), py::arg("root"), py::arg("operation"),
           Unlocked())
      .def(
          "allgather",
          [](World& world, const py::bytes& mine, const std::string& operation) {
            const std::string text = mine;
            std::vector<std::string> texts;
            {
              const py::gil_scoped_release unlocked;
              texts = world.allgather(text, operation);
            }
            py::list list;
            for (const std::string& one : texts) list.append(py::bytes(one));
            return list;
          },
          py::arg("mine"), py::arg("operation"))
      .def("close", &World::close, Unlocked())
      .def("fail", &World::fail, py::arg("message"), py::arg("hint"), py::arg("exit_code"),
           Unlocked());
}

}  // namespace renkei::python
