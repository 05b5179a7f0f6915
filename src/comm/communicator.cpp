#include "comm/communicator.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "comm/allreduce/hierarchical.h"
#include "comm/buffer/chunk_range.h"
#include "comm/choice/cost_measurement.h"
#include "comm/collectives/all_to_all.h"
#include "comm/collectives/barrier.h"
#include "comm/collectives/broadcast.h"
#include "comm/collectives/exchange.h"
#include "comm/collectives/exchange_parts.h"
#include "comm/collectives/reduce_scatter.h"
#include "comm/verdict.h"

namespace renkei::comm {
namespace {

std::vector<std::string> all_hosts(const Transport& transport) {
  std::vector<std::string> hosts;
  for (int rank = 0; rank < transport.size(); ++rank) hosts.push_back(transport.host(rank));
  return hosts;
}

// The inside of a host in shared memory, for the hierarchical allreduce.
class InsideSharedMemory : public InsideHost {
 public:
  explicit InsideSharedMemory(SharedMemory& memory) : memory_(memory) {}

  void reduce_scatter(Buffer buffer, Reduction reduction, const Call& call) override {
    memory_.reduce_scatter(buffer, reduction, call);
  }
  void all_gather(Buffer buffer, const Call& call) override { memory_.all_gather(buffer, call); }
  void reduce(Buffer buffer, Reduction reduction, const Call& call) override {
    memory_.allreduce(buffer, reduction, call);
  }
  void broadcast(Buffer buffer, const Call& call) override {
    memory_.barrier(call);
    if (memory_.local_rank() != 0) {
      const Buffer first = memory_.copy_of(0, buffer);
      std::copy(first.data, first.data + first.bytes(), buffer.data);
    }
    memory_.barrier(call);
  }

 private:
  SharedMemory& memory_;
};

}  // namespace

Communicator::Communicator(Transport& transport, CommunicatorOptions options)
    : transport_(transport), options_(std::move(options)), recorder_(kRecords, transport.clock()) {
  if (!options_.journal)
    options_.journal = std::make_shared<FlightRecorder>(kRecords, transport.clock());
  const auto hosts = all_hosts(transport);
  check_host_groups(options_.host_groups, hosts);
  if (options_.ring_order.empty()) options_.ring_order = ring_order(hosts, options_.host_groups);
  by_host_ = ranks_by_host(options_.ring_order, hosts);
  if (options_.shared_memory && local_ranks(transport).size() > 1)
    shared_ = std::make_unique<SharedMemory>(transport, SharedMemoryOptions{},
                                             call("creation of shared memory"));
  if (options_.cost_model)
    model_ = cost_model_for(transport, *options_.cost_model);
  else if (!in_shared_memory())
    model_ = measure_cost_model(transport, call("measurement of the network"));
}

Communicator::~Communicator() = default;

void Communicator::close() {
  if (shared_) shared_->close(call("end of communication"));
  shared_.reset();
}

Call Communicator::call(std::string_view operation) const {
  return {.operation = operation, .timeout_seconds = options_.timeout_seconds};
}

CommunicatorOptions Communicator::options_among(const std::vector<int>& ranks) const {
  CommunicatorOptions options = options_;
  options.host_groups.clear();  // the order of the ring knows them
  options.ring_order.clear();
  for (const int rank : options_.ring_order)
    if (const auto found = std::ranges::find(ranks, rank); found != ranks.end())
      options.ring_order.push_back(static_cast<int>(found - ranks.begin()));
  return options;
}

Buffer Communicator::allocate(size_t count, DType dtype) {
  if (shared_) return shared_->allocate(count, dtype, call("allocation"));
  private_memory_.push_back(std::make_unique<std::byte[]>(count * size_of(dtype) + kLine));
  const auto address = reinterpret_cast<uintptr_t>(private_memory_.back().get());
  return {private_memory_.back().get() + (kLine - address % kLine), count, dtype};
}

template <typename Work>
void Communicator::recorded(std::string_view name, const Call& call, Buffer buffer, Work work) {
  const Call named = with_name(call, name);
  const int64_t sequence = recorder_.enter(named.operation, named.step, buffer.count, buffer.dtype);
  const int64_t noted =
      options_.journal->enter(named.operation, named.step, buffer.count, buffer.dtype);
  try {
    work(named);
  } catch (const Timeout& timeout) {
    // On one host the shared memory has shown who is missing.
    if (one_host() && shared_) throw;
    throw find_culprit(transport_, recorder_, timeout);
  }
  recorder_.leave(sequence);
  options_.journal->leave(noted);
}

std::optional<Buffer> Communicator::allocate_once(size_t count, DType dtype) {
  if (!shared_) return {};
  return shared_->allocate_once(count, dtype, call("allocation"));
}

bool Communicator::peers_can_read(const Buffer& mine) const {
  return in_shared_memory() && shared_->owns(mine);
}

std::vector<std::byte*> Communicator::meet(Buffer mine, const Call& call) {
  std::vector<std::byte*> copies;
  recorded("allreduce", call, mine, [&](const Call& named) {
    shared_->meet(mine, named);
    for (int local = 0; local < shared_->local_size(); ++local)
      copies.push_back(shared_->copy_of(local, mine).data);
  });
  return copies;
}

void Communicator::local_barrier(const Call& call) {
  if (!shared_) return;
  recorded("barrier", call, Buffer(nullptr, 0, DType::u8),
           [&](const Call& named) { shared_->barrier(named); });
}

bool Communicator::in_shared_memory() const {
  // It sums in rank order, which is what reproducible means.
  return one_host() && shared_ && options_.algorithm == Algorithm::automatic;
}

AllreduceOptions Communicator::message_options() const {
  return {.algorithm = options_.algorithm,
          .model = &model_,
          .segment_bytes = options_.segment_bytes,
          .ring_order = options_.ring_order,
          .wire = options_.wire,
          .reproducible = options_.reproducible};
}

void Communicator::local_allreduce(Buffer buffer, Reduction reduction, const Call& call) {
  if (!shared_) return;
  recorded("allreduce on the host", call, buffer,
           [&](const Call& named) { shared_->allreduce(buffer, reduction, named); });
}

void Communicator::allreduce(Buffer buffer, Reduction reduction, const Call& call) {
  if (transport_.size() == 1) return;
  recorded("allreduce", call, buffer, [&](const Call& named) {
    if (in_shared_memory()) return shared_->allreduce(buffer, reduction, named);
    allreduce_by_messages(buffer, reduction, named, message_options());
  });
}

Buffer Communicator::allreduce_chunk(Buffer buffer, Reduction reduction, const Call& call) {
  if (peers_can_read(buffer)) return reduce_scatter(buffer, reduction, call);
  recorded("allreduce", call, buffer, [&](const Call& named) {
    AllreduceOptions options = message_options();
    options.own_chunk_only = shared_ != nullptr;  // or else the chunk is all of it
    allreduce_by_messages(buffer, reduction, named, options);
  });
  const Range mine = chunk_range(buffer.count, local_size(), local_rank());
  return buffer.part(mine.begin, mine.size());
}

void Communicator::allreduce_by_messages(Buffer buffer, Reduction reduction, const Call& call,
                                         AllreduceOptions options) {
  std::optional<InsideSharedMemory> inside;
  if (shared_ && shared_->owns(buffer)) options.inside = &inside.emplace(*shared_);
  comm::allreduce(transport_, buffer, reduction, call, options);
}

void Communicator::allreduce_by(const Candidate& candidate, Buffer buffer, Reduction reduction,
                                const Call& call) {
  if (candidate.shared_memory || transport_.size() == 1) return allreduce(buffer, reduction, call);
  recorded("allreduce", call, buffer, [&](const Call& named) {
    allreduce_by_messages(buffer, reduction, named, candidate.options);
  });
}

void Communicator::broadcast(Buffer buffer, int root, const Call& call) {
  recorded("broadcast", call, buffer,
           [&](const Call& named) { comm::broadcast(transport_, buffer, root, named); });
}

Buffer Communicator::reduce_scatter(Buffer buffer, Reduction reduction, const Call& call) {
  recorded("reduce_scatter", call, buffer, [&](const Call& named) {
    if (peers_can_read(buffer))
      shared_->reduce_scatter(buffer, reduction, named);
    else
      comm::reduce_scatter(transport_, buffer, reduction, named);
  });
  const Range mine = chunk_range(buffer.count, transport_.size(), transport_.rank());
  return buffer.part(mine.begin, mine.size());
}

void Communicator::all_gather(Buffer buffer, const Call& call) {
  recorded("all_gather", call, buffer, [&](const Call& named) {
    if (peers_can_read(buffer)) return shared_->all_gather(buffer, named);
    std::vector<size_t> counts;
    for (int rank = 0; rank < transport_.size(); ++rank)
      counts.push_back(chunk_range(buffer.count, transport_.size(), rank).size());
    const Range mine = chunk_range(buffer.count, transport_.size(), transport_.rank());
    all_gather_v(transport_, buffer.part(mine.begin, mine.size()), buffer, counts, named);
  });
}

void Communicator::all_to_all(ConstBuffer from, Buffer into, const Call& call) {
  recorded("all_to_all", call, into,
           [&](const Call& named) { comm::all_to_all(transport_, from, into, named); });
}

void Communicator::exchange(const Parts& parts, uint64_t count, const Call& call) {
  recorded("exchange", call, Buffer(nullptr, count, DType::u8),
           [&](const Call& named) { comm::exchange_parts(transport_, parts, count, named); });
}

void Communicator::barrier(const Call& call) {
  recorded("barrier", call, Buffer(nullptr, 0, DType::u8), [&](const Call& named) {
    if (one_host() && shared_)
      shared_->barrier(named);
    else
      comm::barrier(transport_, named);
  });
}

std::string Communicator::choice(Collective collective, Buffer buffer) const {
  if (transport_.size() == 1) return "nothing";
  switch (collective) {
    case Collective::allreduce:
      if (in_shared_memory()) return "shared memory";
      if (options_.reproducible) return "reproducible";
      return std::string(
          name_of(resolved(transport_, buffer.bytes(), buffer.dtype, message_options()).algorithm));
    case Collective::reduce_scatter:
    case Collective::all_gather:
      return peers_can_read(buffer) ? "shared memory" : "ring";
    case Collective::broadcast:
      return broadcasts_by_tree(transport_, buffer.bytes()) ? "tree" : "chain";
    case Collective::all_to_all:
      return "pairwise";
  }
  return "";
}

std::vector<Candidate> Communicator::candidates(Buffer buffer, const CostModel& model) const {
  AllreduceOptions options = message_options();
  options.model = &model;
  auto all = message_candidates(transport_, buffer.bytes(), buffer.dtype, options);
  if (!in_shared_memory()) return all;
  all.front().chosen = false;
  all.front().reason.clear();
  all.insert(
      all.begin(),
      {.name = "shared memory",
       .shared_memory = true,
       .chosen = true,
       .reason = "all ranks are on one host and read each other's memory, without messages"});
  return all;
}

std::string Communicator::topology() const {
  const auto hosts = all_hosts(transport_);
  std::string groups;
  if (!options_.host_groups.empty())
    groups = fmt::format(" and between groups {} times; groups {}",
                         group_crossings(options_.ring_order, hosts, options_.host_groups),
                         format_host_groups(options_.host_groups));
  return fmt::format(
      "ring {} crosses between hosts {} times{}; {} hosts; ranks of a host exchange {}",
      format_ring_order(options_.ring_order), host_crossings(options_.ring_order, hosts), groups,
      by_host_.size(), shared_ ? "in shared memory" : "messages");
}

}  // namespace renkei::comm
