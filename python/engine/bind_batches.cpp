#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include "batches.h"
#include "bindings.h"

namespace py = pybind11;

namespace renkei::python {

void bind_batches(py::module_& module) {
  using Unlocked = py::call_guard<py::gil_scoped_release>;
  py::class_<Batches>(module, "Batches")
      .def(py::init([](World& world, std::string path, bool held_out, int64_t per_rank,
                       bool shuffle, uint64_t seed, std::optional<std::pair<int, int>> image_size,
                       bool augment, std::map<std::string, std::string> settings) {
             return std::make_unique<Batches>(world,
                                              Batches::Options{.path = std::move(path),
                                                               .held_out = held_out,
                                                               .per_rank = per_rank,
                                                               .shuffle = shuffle,
                                                               .seed = seed,
                                                               .image_size = image_size,
                                                               .augment = augment,
                                                               .settings = std::move(settings)});
           }),
           py::arg("world"), py::arg("path"), py::arg("held_out"), py::arg("per_rank"),
           py::arg("shuffle"), py::arg("seed"), py::arg("image_size"), py::arg("augment"),
           py::arg("settings"), py::keep_alive<1, 2>(), Unlocked())
      .def("load", &Batches::load, py::arg("epoch"), py::arg("step"), Unlocked())
      .def("close", &Batches::close, Unlocked())
      .def_property_readonly("count", &Batches::count)
      .def_property_readonly("steps", &Batches::steps)
      .def_property_readonly("classes", &Batches::classes);
}

}  // namespace renkei::python
