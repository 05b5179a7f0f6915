#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include "bindings.h"
#include "world.h"

namespace py = pybind11;

namespace renkei::python {
namespace {

using Unlocked = py::call_guard<py::gil_scoped_release>;

py::list allgather(Collectives& ranks, const py::bytes& mine, const std::string& operation,
                   std::optional<double> timeout_seconds) {
  const std::string text = mine;
  std::vector<std::string> texts;
  {
    const py::gil_scoped_release unlocked;
    texts = ranks.allgather(text, operation, timeout_seconds);
  }
  py::list list;
  for (const std::string& one : texts) list.append(py::bytes(one));
  return list;
}

void bind_collectives(py::module_& module) {
  py::class_<Collectives>(module, "Collectives")
      .def_property_readonly("rank", &Collectives::rank)
      .def_property_readonly("size", &Collectives::size)
      .def_property_readonly("timeout_seconds", &Collectives::timeout_seconds)
      .def("barrier", &Collectives::barrier, py::arg("operation"), Unlocked())
      .def("allreduce", &Collectives::allreduce, py::arg("tensor"), py::arg("reduction"),
           py::arg("operation"), Unlocked())
      .def("reduce_scatter", &Collectives::reduce_scatter, py::arg("tensor"), py::arg("reduction"),
           py::arg("operation"), Unlocked())
      .def("broadcast", &Collectives::broadcast, py::arg("tensor"), py::arg("root"),
           py::arg("operation"), Unlocked())
      .def("allgather", &allgather, py::arg("mine"), py::arg("operation"),
           py::arg("timeout_seconds") = std::nullopt)
      .def("allgather_rows", &Collectives::allgather_rows, py::arg("mine"), py::arg("operation"),
           Unlocked())
      .def("alltoall", &Collectives::alltoall, py::arg("rows"), py::arg("splits"),
           py::arg("operation"), Unlocked())
      .def("close", &Collectives::close, Unlocked());
}

}  // namespace

void bind_world(py::module_& module) {
  module.def("mpi_library", &comm::mpi_library);
  bind_collectives(module);
  py::class_<World, Collectives>(module, "World")
      .def(py::init<double>(), py::arg("timeout_seconds"), Unlocked())
      .def_property_readonly("local_rank", &World::local_rank)
      .def_property_readonly("local_size", &World::local_size)
      .def_property_readonly("hosts", &World::hosts)
      .def_property_readonly("host_number", &World::host_number)
      .def_property_readonly("ranks_of_hosts", &World::ranks_of_hosts)
      .def_property_readonly("host", &World::host)
      .def_property_readonly("threads", &World::threads)
      .def("fail", &World::fail, py::arg("message"), py::arg("hint"), py::arg("exit_code"),
           Unlocked());
  py::class_<QueueRanks, Collectives>(module, "QueueRanks")
      .def(py::init<World&>(), py::arg("world"), py::keep_alive<1, 2>(), Unlocked());
}

}  // namespace renkei::python
