#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include "backend/backend.h"
#include "backend/shared_tensors.h"
#include "base/error.h"
#include "bindings.h"
#include "comm/message_collectives.h"
#include "comm/shared_memory/host_collectives.h"
#include "comm/transport/host_transport.h"
#include "comm/transport/sub_transport.h"
#include "world.h"

namespace py = pybind11;

namespace renkei::python {
namespace {

using StorePointer = c10::intrusive_ptr<c10d::Store>;

comm::Rendezvous rendezvous_of(const StorePointer& store, std::vector<int> job_ranks,
                               double timeout_seconds) {
  const auto timeout = std::chrono::milliseconds(static_cast<int64_t>(timeout_seconds * 1000));
  return {
      .put = [store](const std::string& key, const std::string& value) { store->set(key, value); },
      .get =
          [store, job_ranks, timeout](const std::string& key, int rank) {
            try {
              store->wait({key}, timeout);
            } catch (const std::exception&) {
              const int in_job = job_ranks[static_cast<size_t>(rank)];
              Error error(ErrorCode::communication,
                          fmt::format("rank {} has not come to its process group within {} s",
                                      in_job, static_cast<double>(timeout.count()) / 1000),
                          "look at the log of that rank");
              error.rank = in_job;
              throw error;
            }
            return store->get_to_str(key);
          }};
}

// A group of ranks of one host, which needs no MPI.
c10::intrusive_ptr<c10d::Backend> make_host_backend(const StorePointer& store, int rank, int size,
                                                    const std::vector<int>& job_ranks,
                                                    const std::string& host,
                                                    double timeout_seconds) {
  const py::gil_scoped_release unlocked;
  GroupParts parts;
  parts.transport =
      comm::make_host_transport(rank, size, rendezvous_of(store, job_ranks, timeout_seconds),
                                {.host = host, .job_ranks = job_ranks});
  comm::Arena* const arena = size > 1 ? share_tensors(rank) : nullptr;
  parts.collectives = std::make_unique<comm::HostCollectives>(
      *parts.transport, arena,
      comm::Call{.operation = "creation of a process group", .timeout_seconds = timeout_seconds});
  parts.first_tag = 1 << 20;
  parts.tags = 1 << 30;
  return c10::make_intrusive<RenkeiBackend>(
      std::move(parts), std::chrono::milliseconds(static_cast<int64_t>(timeout_seconds * 1000)));
}

// A group of ranks of several hosts, over the job's MPI.
c10::intrusive_ptr<c10d::Backend> make_job_backend(World& world, const std::vector<int>& job_ranks,
                                                   int number, double timeout_seconds) {
  const py::gil_scoped_release unlocked;
  if (number >= comm::channels::kMostGroups)
    throw Error(ErrorCode::usage,
                fmt::format("over several hosts a job has at most {} process groups and models at "
                            "a time",
                            comm::channels::kMostGroups),
                "destroy those that are no longer needed");
  GroupParts parts;
  parts.ticket = world.owner();
  parts.transport = std::make_unique<comm::SubTransport>(world.transport(), job_ranks,
                                                         comm::channels::group(number));
  comm::CommunicatorOptions options = world.communicator().options_among(job_ranks);
  options.timeout_seconds = timeout_seconds;
  options.cost_model = world.communicator().cost_model();
  parts.collectives = std::make_unique<comm::MessageCollectives>(*parts.transport, options);
  parts.first_tag = comm::kVerdictTag + 1;
  parts.tags = comm::kTagsPerChannel - parts.first_tag;
  return c10::make_intrusive<RenkeiBackend>(
      std::move(parts), std::chrono::milliseconds(static_cast<int64_t>(timeout_seconds * 1000)));
}

}  // namespace

void bind_backend(py::module_& module) {
  module.def("make_host_backend", &make_host_backend, py::arg("store"), py::arg("rank"),
             py::arg("size"), py::arg("job_ranks"), py::arg("host"), py::arg("timeout_seconds"));
  module.def(
      "taken_group_numbers", [](World& world) { return world.transport().registry().groups(); },
      py::arg("world"));
  module.def("make_job_backend", &make_job_backend, py::arg("world"), py::arg("job_ranks"),
             py::arg("number"), py::arg("timeout_seconds"));
}

}  // namespace renkei::python
