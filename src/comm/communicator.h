// What the rest of Renkei exchanges data through: it knows the ranks, their hosts, the memory they
// share and what each way costs, chooses the algorithm, records every operation, and explains a
// wait that took too long.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/settings.h"
#include "comm/allreduce.h"
#include "comm/choice/candidates.h"
#include "comm/choice/topology.h"
#include "comm/collectives/all_gather.h"
#include "comm/flight_recorder.h"
#include "comm/group_collectives.h"
#include "comm/shared_memory/shared_allreduce.h"
#include "comm/transport/transport.h"

namespace renkei::comm {

struct CommunicatorOptions {
  Algorithm algorithm = Algorithm::automatic;
  std::vector<int> ring_order = {};  // empty: ranks of a host and hosts of a group side by side
  HostGroups host_groups = {};
  std::optional<DType> wire = {};  // f16 or bf16 between hosts, for f32 buffers
  size_t segment_bytes = 0;        // 0: chosen
  bool reproducible = false;
  bool shared_memory = true;
  double timeout_seconds = 300;  // for waits that no caller asks for: its creation, allocations
  // What links and reductions cost; the ranks and hosts in it do not count. Empty: measured.
  std::optional<CostModel> cost_model = {};
  // Where all operations of this process are noted, by whatever communicator; null: one of its own.
  std::shared_ptr<FlightRecorder> journal = {};
};

void declare_settings(Settings& settings);
CommunicatorOptions communicator_options(const Settings& settings, int ranks);

class Communicator {
 public:
  // All ranks together. The transport must outlive the communicator.
  Communicator(Transport& transport, CommunicatorOptions options);
  // Does not communicate.
  ~Communicator();
  // All ranks together, at an orderly end: what was allocated here is gone, and nothing may be
  // called any more. Without it, shared memory stays until the transport is closed.
  void close();

  Transport& transport() { return transport_; }
  // The same for a communicator of some of the ranks, which are numbered anew from 0.
  CommunicatorOptions options_among(const std::vector<int>& ranks) const;
  const FlightRecorder& recorder() const { return recorder_; }
  // The operations of this one and of those made with options_among().
  const FlightRecorder& journal() const { return *options_.journal; }

  // Memory in which a reduction is fastest: shared by the ranks of a host where that is possible.
  // All ranks together, with the same count. Lives as long as the communicator. Zero at first.
  Buffer allocate(size_t count, DType dtype);

  // Like allocate(), but the ranks of a host get the same memory, once: what one writes, all have
  // after the next barrier. Null without shared memory.
  std::optional<Buffer> allocate_once(size_t count, DType dtype);

  // Whether the ranks can read each other's part of this memory: all are on one host, the buffer
  // comes from allocate(), and no algorithm is prescribed.
  bool peers_can_read(const Buffer& mine) const;
  // Waits until all ranks are here with the same part of the same allocation, and returns where
  // each rank has it, in rank order. Only if peers_can_read().
  std::vector<std::byte*> meet(Buffer mine, const Call& call);

  // This rank's place among those of its host that share memory: 0 of 1 without.
  int local_rank() const { return shared_ ? shared_->local_rank() : 0; }
  int local_size() const { return shared_ ? shared_->local_size() : 1; }
  // Among them; nothing to do where there is one.
  void local_barrier(const Call& call);
  void local_allreduce(Buffer buffer, Reduction reduction, const Call& call);

  // All ranks end with the same bits.
  void allreduce(Buffer buffer, Reduction reduction, const Call& call);
  // The same where the ranks of a host divide the result among them: afterwards the chunk
  // chunk_range(count, local_size(), local_rank()) of the buffer is part of it, the rest means
  // nothing. Returns the chunk.
  Buffer allreduce_chunk(Buffer buffer, Reduction reduction, const Call& call);
  void broadcast(Buffer buffer, int root, const Call& call);
  // Afterwards the chunk chunk_range(count, n, rank) of the buffer is the result; the rest means
  // nothing. Returns the chunk.
  Buffer reduce_scatter(Buffer buffer, Reduction reduction, const Call& call);
  // The other half: every rank's chunk goes to all ranks.
  void all_gather(Buffer buffer, const Call& call);
  void all_to_all(ConstBuffer from, Buffer into, const Call& call);
  // Parts of any sizes between any ranks; `count` must be the same on all.
  void exchange(const Parts& parts, uint64_t count, const Call& call);
  void barrier(const Call& call);

  // How a collective on this buffer would be done: "shared memory", "hierarchical", "ring" …
  std::string choice(Collective collective, Buffer buffer) const;
  // All ways to do an allreduce of this buffer, also those that are not chosen. The model is for
  // messages, of which the communicator has none where it needs none.
  std::vector<Candidate> candidates(Buffer buffer, const CostModel& model) const;
  void allreduce_by(const Candidate& candidate, Buffer buffer, Reduction reduction,
                    const Call& call);

  bool in_shared_memory() const;  // whether an allreduce needs no message at all
  std::string topology() const;   // the ring in words, for the log
  const CostModel& cost_model() const { return model_; }

 private:
  Call call(std::string_view operation) const;
  AllreduceOptions message_options() const;
  void allreduce_by_messages(Buffer buffer, Reduction reduction, const Call& call,
                             AllreduceOptions options);
  bool one_host() const { return by_host_.size() == 1; }

  template <typename Work>
  void recorded(std::string_view name, const Call& call, Buffer buffer, Work work);

  static constexpr size_t kLine = 64, kRecords = 256;

  Transport& transport_;
  CommunicatorOptions options_;
  FlightRecorder recorder_;
  CostModel model_;
  std::vector<std::vector<int>> by_host_;  // the ranks of each host
  std::unique_ptr<SharedMemory> shared_;   // null: one rank on this host, or switched off
  std::vector<std::unique_ptr<std::byte[]>> private_memory_;  // where there is no shared memory
};

}  // namespace renkei::comm
