#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include "base/error.h"
#include "bindings.h"
#include "run/memory.h"
#include "run_record.h"
#include "staged_model.h"

namespace py = pybind11;

namespace renkei::python {
namespace {

using run::CalledNetwork;
using Text =
    std::tuple<std::string, std::vector<std::pair<std::string, std::string>>, NamedTensors>;

CapturedModel captured(Text given) {
  return {std::move(std::get<0>(given)), std::move(std::get<1>(given)),
          std::move(std::get<2>(given))};
}

CalledNetwork::Buffers buffers_of(const std::string& name) {
  if (name == "mean") return CalledNetwork::Buffers::mean;
  return name == "own" ? CalledNetwork::Buffers::own : CalledNetwork::Buffers::rank0;
}

// As a context: `with _engine.HostMemory():`
struct HostScope {
  std::optional<run::HostMemory> memory;
};

}  // namespace

void bind_staged_model(py::module_& module) {
  using Unlocked = py::call_guard<py::gil_scoped_release>;
  py::class_<CalledNetwork::Call, std::shared_ptr<CalledNetwork::Call>>(module, "Call");
  py::class_<HostScope>(module, "HostMemory")
      .def(py::init())
      .def("__enter__", [](HostScope& scope) { scope.memory.emplace(); })
      .def("__exit__", [](HostScope& scope, const py::args&) { scope.memory.reset(); });
  py::enum_<CalledNetwork::Purpose>(module, "Purpose")
      .value("state_dict", CalledNetwork::Purpose::state_dict)
      .value("load_state_dict", CalledNetwork::Purpose::load_state_dict)
      .value("save", CalledNetwork::Purpose::save)
      .value("load", CalledNetwork::Purpose::load)
      .value("norm", CalledNetwork::Purpose::norm)
      .value("capture", CalledNetwork::Purpose::capture)
      .value("close", CalledNetwork::Purpose::close);
  py::class_<StagedModel>(module, "StagedModel")
      .def(py::init([](World& world, Text text, int64_t samples, NamedTensors batch,
                       std::optional<int64_t> micro_batches, const std::string& buffers,
                       std::map<std::string, std::string> settings) {
             return std::make_unique<StagedModel>(
                 world, captured(std::move(text)),
                 StagedModel::Options{.samples = samples,
                                      .batch = std::move(batch),
                                      .micro_batches = micro_batches,
                                      .buffers = buffers_of(buffers),
                                      .settings = std::move(settings)});
           }),
           py::arg("world"), py::arg("captured"), py::arg("samples"), py::arg("batch"),
           py::arg("micro_batches"), py::arg("buffers"), py::arg("settings"),
           py::keep_alive<1, 2>(), Unlocked())
      .def(
          "add", [](StagedModel& model, Text text) { return model.add(captured(std::move(text))); },
          py::arg("captured"), Unlocked())
      .def(
          "forward",
          [](StagedModel& model, int program, const CalledNetwork::Inputs& inputs, bool gradients) {
            CalledNetwork::Result result = model.network().forward(program, inputs, gradients);
            return std::make_pair(std::move(result.outputs), std::move(result.call));
          },
          py::arg("program"), py::arg("inputs"), py::arg("gradients"), Unlocked())
      .def(
          "backward",
          [](StagedModel& model, const std::shared_ptr<CalledNetwork::Call>& call,
             const std::vector<std::optional<torch::Tensor>>& gradients, bool reduce) {
            std::vector<torch::Tensor> given;
            for (const auto& one : gradients) given.push_back(one.value_or(torch::Tensor()));
            model.network().backward(*call, given, reduce);
          },
          py::arg("call"), py::arg("gradients"), py::arg("reduce"), Unlocked())
      .def(
          "meet",
          [](StagedModel& model, CalledNetwork::Purpose purpose) { model.network().meet(purpose); },
          py::arg("purpose"), Unlocked())
      .def(
          "record",
          [](StagedModel& model, RunRecord& record) { model.network().record(&record.recorder()); },
          py::arg("record"), py::keep_alive<1, 2>())
      .def(
          "close", [](StagedModel& model) { model.network().close(); }, Unlocked())
      .def("limit_device", [](StagedModel& model) { model.network().limit_device(); })
      .def("holders", &StagedModel::holders, py::arg("name"))
      .def_property(
          "step", [](StagedModel& model) { return model.network().steps(); },
          [](StagedModel& model, int64_t step) { model.network().go_to(step); })
      .def_property_readonly("draws", &StagedModel::draws)
      .def_property_readonly("plan", &StagedModel::plan)
      .def_property_readonly("stages", &StagedModel::stages)
      .def_property_readonly("names", &StagedModel::names);
}

}  // namespace renkei::python
