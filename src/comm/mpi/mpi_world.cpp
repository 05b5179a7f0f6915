#include "comm/mpi/mpi_world.h"

#include <mpi.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <set>
#include <vector>

#include "base/error.h"
#include "comm/mpi/mpi_transport.h"

namespace renkei::comm {
namespace {

// Host names have at most 64 characters on Linux; a fixed field makes the exchange one call.
constexpr int kHostField = 256;

std::vector<std::string> gather_hosts(MPI_Comm communicator, int size) {
  std::array<char, kHostField> mine{};
  ::gethostname(mine.data(), mine.size() - 1);
  std::vector<char> all(static_cast<size_t>(size) * kHostField);
  MPI_Allgather(mine.data(), kHostField, MPI_CHAR, all.data(), kHostField, MPI_CHAR, communicator);
  std::vector<std::string> hosts;
  for (int rank = 0; rank < size; ++rank)
    hosts.emplace_back(&all[static_cast<size_t>(rank) * kHostField]);
  return hosts;
}

}  // namespace

MpiWorld::MpiWorld(BlockingCalls tell) : tell_(std::move(tell)) {
  const InsideOfMpi inside(tell_, "start-up of MPI");
  int provided = 0, initialised = 0;
  MPI_Initialized(&initialised);
  initialised_here_ = initialised == 0;
  if (initialised_here_)
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
  else
    MPI_Query_thread(&provided);
  if (provided < MPI_THREAD_MULTIPLE)
    throw Error(ErrorCode::communication,
                fmt::format("{} does not let several threads communicate", mpi_library()),
                "use an MPI library that was built with MPI_THREAD_MULTIPLE");
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  transport_ = make_mpi_transport(gather_hosts(MPI_COMM_WORLD, size), tell_);
  MPI_Barrier(MPI_COMM_WORLD);
}

void MpiWorld::close() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized) return;
  transport_->close();
  const InsideOfMpi inside(tell_, "finalisation of MPI");
  if (initialised_here_) MPI_Finalize();
}

int MpiWorld::hosts() const {
  std::set<std::string> names;
  for (int rank = 0; rank < transport_->size(); ++rank) names.insert(transport_->host(rank));
  return static_cast<int>(names.size());
}

int MpiWorld::local_ranks() const {
  int count = 0;
  for (int rank = 0; rank < transport_->size(); ++rank)
    count += transport_->host(rank) == transport_->host(transport_->rank());
  return count;
}

void MpiWorld::abort(int exit_code) {
  std::fflush(nullptr);
  // A rank that is alone has nobody to end, and MPI_Abort would print a banner.
  if (transport_->size() > 1) MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);
}

std::string mpi_library() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  std::string version(text.data());
  // "Open MPI v4.1.4, package: Debian …" and "MPICH Version:      4.0.2\nMPICH Release date…"
  version = version.substr(0, version.find_first_of(",\n"));
  for (const auto& [from, to] : {std::pair{"Open MPI v", "Open MPI "}, {"Version:", ""}})
    if (const size_t place = version.find(from); place != std::string::npos)
      version.replace(place, std::strlen(from), to);
  std::string tidy;
  for (const char c : version)
    if (c != '\t' && !(c == ' ' && !tidy.empty() && tidy.back() == ' ')) tidy += c;
  return tidy;
}

}  // namespace renkei::comm
