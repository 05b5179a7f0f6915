#include <mpi.h>

#include <cstdlib>
#include <cstring>

#include "comm/mpi/peers.h"

namespace renkei::comm {
namespace {

class MpiPeer : public Peer {
 public:
  MpiPeer(std::string name, MPI_Comm communicator)
      : name_(std::move(name)), communicator_(communicator) {}
  std::string name() const override { return name_; }
  void allreduce(std::span<float> buffer) override {
    MPI_Allreduce(MPI_IN_PLACE, buffer.data(), static_cast<int>(buffer.size()), MPI_FLOAT, MPI_SUM,
                  communicator_);
  }

 private:
  std::string name_;
  MPI_Comm communicator_;  // freed with the process
};

// Writes a control variable of the MPI library; false when it has none of that name.
bool set_variable(const char* name, int value) {
  int count = 0;
  MPI_T_cvar_get_num(&count);
  for (int i = 0; i < count; ++i) {
    char found[256];
    int length = sizeof found, verbosity, bind, scope;
    MPI_Datatype type;
    MPI_T_enum values;
    if (MPI_T_cvar_get_info(i, found, &length, &verbosity, &type, &values, nullptr, nullptr, &bind,
                            &scope) != MPI_SUCCESS ||
        std::strcmp(found, name) != 0)
      continue;
    MPI_T_cvar_handle handle;
    int elements = 0;
    if (MPI_T_cvar_handle_alloc(i, nullptr, &handle, &elements) != MPI_SUCCESS) return false;
    const bool written = MPI_T_cvar_write(handle, &value) == MPI_SUCCESS;
    MPI_T_cvar_handle_free(&handle);
    return written;
  }
  return false;
}

MPI_Comm duplicate() {
  MPI_Comm communicator;
  MPI_Comm_dup(MPI_COMM_WORLD, &communicator);
  return communicator;
}

}  // namespace

void prepare_mpi_peers() {
  // Lets a communicator of Open MPI have an algorithm of its own; without one it decides as ever.
  ::setenv("OMPI_MCA_coll_tuned_use_dynamic_rules", "1", 0);
}

std::vector<std::unique_ptr<Peer>> make_mpi_peers() {
  std::vector<std::unique_ptr<Peer>> peers;
  peers.push_back(std::make_unique<MpiPeer>("mpi", duplicate()));
  int provided = 0;
  MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided);
  // A communicator takes the value that the variable has when it is made.
  struct Variant {
    const char* name;
    int algorithm, segment_bytes;
  };
  for (const Variant& variant :
       {Variant{"mpi-ring", 4, 0}, Variant{"mpi-segmented-ring", 5, 1 << 20},
        Variant{"mpi-rabenseifner", 6, 0}})
    if (set_variable("coll_tuned_allreduce_algorithm", variant.algorithm) &&
        set_variable("coll_tuned_allreduce_algorithm_segmentsize", variant.segment_bytes))
      peers.push_back(std::make_unique<MpiPeer>(variant.name, duplicate()));
  set_variable("coll_tuned_allreduce_algorithm", 0);
  set_variable("coll_tuned_allreduce_algorithm_segmentsize", 0);
  MPI_T_finalize();
  return peers;
}

}  // namespace renkei::comm
