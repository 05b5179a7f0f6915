#include "world.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "base/error.h"
#include "cluster/cores.h"
#include "cluster/failure_notes.h"
#include "cluster/launcher.h"
#include "cluster/limits.h"
#include "comm/collectives/all_gather.h"
#include "tensors.h"

namespace renkei::python {
namespace {

comm::Reduction reduction_of(const std::string& name) {
  for (const comm::Reduction reduction :
       {comm::Reduction::sum, comm::Reduction::mean, comm::Reduction::max, comm::Reduction::min})
    if (comm::name_of(reduction) == name) return reduction;
  throw Error(ErrorCode::usage, fmt::format("there is no reduction '{}'", name),
              "choose sum, mean, max or min");
}

std::span<std::byte> bytes_of(std::string& text) {
  return {reinterpret_cast<std::byte*>(text.data()), text.size()};
}

}  // namespace

World::World(double timeout_seconds) : timeout_seconds_(timeout_seconds) {
  const auto started_by =
      cluster::detect_launcher([](const char* name) { return std::getenv(name); });
  cluster::check_launcher(started_by, size(), comm::mpi_library(), "python");
  cluster::check_limits(cluster::current_limits(), size());
  cluster::introduce_to_supervisor(rank(), host());
  threads_ = cluster::threads_per_rank(transport());
  Settings settings;
  comm::declare_settings(settings);
  comm::CommunicatorOptions options = comm::communicator_options(settings, size());
  options.timeout_seconds = timeout_seconds;
  communicator_ = std::make_unique<comm::Communicator>(transport(), options);
}

int World::local_rank() {
  const std::vector<int> local = comm::local_ranks(transport());
  return static_cast<int>(std::ranges::find(local, rank()) - local.begin());
}

int World::local_size() {
  return static_cast<int>(comm::local_ranks(transport()).size());
}

void World::barrier(const std::string& operation) {
  communicator_->barrier(call(operation));
}

void World::allreduce(torch::Tensor tensor, const std::string& reduction,
                      const std::string& operation) {
  communicator_->allreduce(buffer_of(tensor), reduction_of(reduction), call(operation));
}

void World::broadcast(torch::Tensor tensor, int root, const std::string& operation) {
  const comm::Buffer bytes{static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes(),
                           comm::DType::u8};
  communicator_->broadcast(bytes, root, call(operation));
}

std::vector<std::string> World::allgather(const std::string& mine, const std::string& operation) {
  const auto ranks = static_cast<size_t>(size());
  const std::array<int64_t, 1> length{static_cast<int64_t>(mine.size())};
  std::vector<int64_t> lengths(ranks);
  comm::all_gather(transport(), std::span(length), comm::Buffer(std::span(lengths)),
                   call(operation));
  std::vector<size_t> counts;
  size_t total = 0;
  for (const int64_t one : lengths) total += counts.emplace_back(static_cast<size_t>(one));
  std::string all(total, '\0');
  comm::all_gather_v(transport(), std::as_bytes(std::span(mine)), comm::Buffer(bytes_of(all)),
                     counts, call(operation));
  std::vector<std::string> texts;
  size_t begin = 0;
  for (const size_t count : counts) {
    texts.push_back(all.substr(begin, count));
    begin += count;
  }
  return texts;
}

void World::close() {
  communicator_->close();
  world_.close();
}

void World::fail(const std::string& message, const std::string& hint, int exit_code) {
  // Ranks often fail together; the first speaks at once, the others give it the time to do so.
  if (rank() != 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const Error error(static_cast<ErrorCode>(exit_code), message, hint);
  if (!cluster::leave_failure_note(error, rank(), host())) {
    fmt::print(stderr, "{}\n", format_for_people(error));
    std::fflush(nullptr);
  }
  world_.abort(exit_code);
}

}  // namespace renkei::python
