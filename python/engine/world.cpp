#include "world.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <numeric>
#include <thread>

#include "base/error.h"
#include "cluster/cores.h"
#include "cluster/failure_notes.h"
#include "cluster/launcher.h"
#include "cluster/limits.h"
#include "comm/transport/sub_transport.h"

namespace renkei::python {

World::World(double timeout_seconds)
    : Collectives(timeout_seconds), world_(std::make_shared<comm::MpiWorld>()) {
  comm::Transport& all = world_->transport();
  const auto started_by =
      cluster::detect_launcher([](const char* name) { return std::getenv(name); });
  cluster::check_launcher(started_by, all.size(), comm::mpi_library(), "python");
  cluster::check_limits(cluster::current_limits(), all.size());
  cluster::introduce_to_supervisor(all.rank(), all.host(all.rank()));
  threads_ = cluster::threads_per_rank(all);
  Settings settings;
  comm::declare_settings(settings);
  open(world_, all, comm::communicator_options(settings, all.size()));
}

int World::local_rank() {
  const std::vector<int> local = comm::local_ranks(transport());
  return static_cast<int>(std::ranges::find(local, rank()) - local.begin());
}

int World::local_size() {
  return static_cast<int>(comm::local_ranks(transport()).size());
}

int World::host_number() {
  std::vector<std::string> seen;
  for (int other = 0; other < size(); ++other) {
    const std::string& name = transport().host(other);
    const auto found = std::ranges::find(seen, name);
    if (name == host()) return static_cast<int>(found - seen.begin());
    if (found == seen.end()) seen.push_back(name);
  }
  return 0;
}

std::vector<int> World::ranks_of_hosts() {
  std::map<std::string, int> ranks;
  for (int other = 0; other < size(); ++other) ++ranks[transport().host(other)];
  std::vector<int> counts;
  for (const auto& [host, count] : ranks) counts.push_back(count);
  return counts;
}

void World::close() {
  Collectives::close();
  world_->close();
}

void World::fail(const std::string& message, const std::string& hint, int exit_code) {
  // Ranks often fail together; the first speaks at once, the others give it the time to do so.
  if (rank() != 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const Error error(static_cast<ErrorCode>(exit_code), message, hint);
  if (!cluster::leave_failure_note(error, rank(), host())) {
    fmt::print(stderr, "{}\n", format_for_people(error));
    std::fflush(nullptr);
  }
  world_->abort(exit_code);
}

QueueRanks::QueueRanks(World& world) : Collectives(world.timeout_seconds()) {
  std::vector<int> ranks(static_cast<size_t>(world.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  auto own = std::make_shared<comm::SubTransport>(world.transport(), ranks, comm::channels::kQueue);
  open(own, *own, world.communicator().options_among(ranks));
}

}  // namespace renkei::python
