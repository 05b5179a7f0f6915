// The cases of collective_cases.h over MPI, with the number of ranks that --ranks=N promises.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "base/error.h"
#include "comm/collectives/barrier.h"
#include "comm/communicator.h"
#include "comm/mpi/mpi_world.h"
#include "tests/comm/collective_cases.h"

namespace renkei::comm {
namespace {

MpiWorld* world = nullptr;

TEST(MpiCollectives, AgreeWithTheReference) {
  Transport& transport = world->transport();
  check_barrier(transport);
  check_broadcast(transport);
  check_all_gather(transport);
  check_all_gather_v(transport);
  check_reduce_scatter(transport);
  check_all_to_all(transport);
  check_allreduce(transport);
  check_allreduce_gives_same_bits(transport);
}

TEST(MpiCollectives, DoNotMixTheirMessages) {
  check_random_sequence(world->transport());
}

TEST(MpiCollectives, OfGroupsUseMemoryThatOnlyTheyShare) {
  check_groups_share_memory(world->transport());
}

TEST(MpiCollectives, MoveMoreThan2To31Bytes) {
  // Twice is enough: more ranks only need more memory.
  if (world->transport().size() == 2) check_broadcast_above_2_31_bytes(world->transport());
}

// Rank 0 unwinds, or just leaves the frame, and only then lets the others go on.
TEST(MpiCollectives, LeaveSharedMemoryWithoutTheOthers) {
  Transport& transport = world->transport();
  for (const bool fails : {true, false}) {
    try {
      Communicator communicator(transport, {});
      communicator.allocate(1000, DType::f32);
      communicator.barrier({});
      if (transport.rank() != 0) barrier(transport, {.timeout_seconds = 20});
      if (fails && transport.rank() == 0) throw Error(ErrorCode::data, "rank 0 lost its data");
    } catch (const Error& error) {
      EXPECT_EQ(error.message, "rank 0 lost its data");
    }
    if (transport.rank() == 0) barrier(transport, {.timeout_seconds = 20});
  }
}

TEST(MpiCollectives, FreeSharedMemoryTogether) {
  for (int round = 0; round < 3; ++round) {
    Communicator communicator(world->transport(), {});
    communicator.allocate(1000, DType::f32);
    communicator.close();
  }
}

TEST(MpiCollectives, NameARankThatNeverComesToShareMemory) {
  Transport& transport = world->transport();
  if (transport.size() == 1) return;
  const int missing = transport.size() - 1;
  if (transport.rank() != missing) {
    try {
      transport.share(100, {.operation = "the cache", .timeout_seconds = 0.2});
      ADD_FAILURE() << "it went on without rank " << missing;
    } catch (const Timeout& error) {
      EXPECT_EQ(error.rank, missing);
      EXPECT_TRUE(error.message.find("in the cache") != std::string::npos) << error.message;
    }
  }
  barrier(transport, {.timeout_seconds = 20});
}

TEST(MpiWorld, KnowsHostsAndRanks) {
  EXPECT_EQ(world->hosts(), 1);
  EXPECT_EQ(world->local_ranks(), world->transport().size());
  EXPECT_FALSE(world->transport().host(0).empty());
  EXPECT_TRUE(mpi_library().starts_with("Open MPI ") || mpi_library().starts_with("MPICH "))
      << mpi_library();
}

}  // namespace
}  // namespace renkei::comm

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  renkei::comm::MpiWorld mpi;
  renkei::comm::world = &mpi;
  const int size = mpi.transport().size();
  if (argc != 2 || argv[1] != "--ranks=" + std::to_string(size)) {
    std::fprintf(stderr, "this is rank 0 of %d, but %s was asked for\n", size,
                 argc > 1 ? argv[1] : "nothing");
    return 1;
  }
  // A rank that fails must not leave the others waiting in MPI_Finalize.
  const int failed = RUN_ALL_TESTS();
  if (failed) mpi.abort(failed);
  mpi.close();
  return 0;
}
