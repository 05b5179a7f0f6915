#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include "bindings.h"
#include "run/device.h"
#include "run/replicas.h"
#include "world.h"

namespace py = pybind11;

namespace renkei::python {

void bind_replicas(py::module_& module) {
  using Unlocked = py::call_guard<py::gil_scoped_release>;
  using run::Replicas;
  module.def("set_threads", &run::set_threads, py::arg("threads"));
  py::class_<Replicas>(module, "Replicas")
      .def(py::init([](World& world, std::vector<torch::Tensor> parameters, size_t bucket_bytes) {
             return std::make_unique<Replicas>(
                 std::move(parameters), world.communicator(),
                 Replicas::Options{.timeout_seconds = world.timeout_seconds(),
                                   .bucket_bytes = bucket_bytes});
           }),
           py::arg("world"), py::arg("parameters"), py::arg("bucket_bytes"), py::keep_alive<1, 2>(),
           Unlocked())
      .def("begin_backward", &Replicas::begin_backward, Unlocked())
      .def("finish_backward", &Replicas::finish_backward, Unlocked())
      .def("close", &Replicas::close, Unlocked());
}

}  // namespace renkei::python
