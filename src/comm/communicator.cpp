#include "comm/communicator.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "comm/barrier.h"
#include "comm/broadcast.h"
#include "comm/cost_measurement.h"
#include "comm/exchange.h"
#include "comm/hierarchical.h"
#include "comm/topology.h"
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
    : transport_(transport), options_(std::move(options)) {
  const auto hosts = all_hosts(transport);
  if (options_.ring_order.empty()) options_.ring_order = ring_order(hosts);
  by_host_ = ranks_by_host(options_.ring_order, hosts);
  if (options_.shared_memory && local_ranks(transport).size() > 1)
    shared_ = std::make_unique<SharedMemory>(transport);
  if (!in_shared_memory())
    model_ = measure_cost_model(transport, {.operation = "measurement of the network"});
}

Communicator::~Communicator() = default;

Buffer Communicator::allocate(size_t count, DType dtype) {
  if (shared_) return shared_->allocate(count, dtype, {.operation = "allocation"});
  private_memory_.push_back(std::make_unique<std::byte[]>(count * size_of(dtype) + kLine));
  const auto address = reinterpret_cast<uintptr_t>(private_memory_.back().get());
  return {private_memory_.back().get() + (kLine - address % kLine), count, dtype};
}

template <typename Work>
void Communicator::recorded(std::string_view name, const Call& call, Buffer buffer, Work work) {
  const Call named = with_name(call, name);
  const int64_t sequence = recorder_.enter(named.operation, named.step, buffer.count, buffer.dtype);
  try {
    work(named);
  } catch (const Timeout& timeout) {
    // On one host the shared memory has shown who is missing.
    if (one_host() && shared_) throw;
    throw find_culprit(transport_, recorder_, timeout);
  }
  recorder_.leave(sequence);
}

std::optional<Buffer> Communicator::allocate_once(size_t count, DType dtype) {
  if (!shared_) return {};
  // Every rank has a part of the window; only the pages of the first are ever touched.
  return shared_->copy_of(0, shared_->allocate(count, dtype, {.operation = "allocation"}));
}

bool Communicator::peers_can_read(const Buffer& mine) const {
  return in_shared_memory() && shared_->owns(mine);
}

std::vector<const std::byte*> Communicator::meet(Buffer mine, const Call& call) {
  std::vector<const std::byte*> copies;
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
    AllreduceOptions options = message_options();
    std::optional<InsideSharedMemory> inside;
    if (shared_ && shared_->owns(buffer)) options.inside = &inside.emplace(*shared_);
    comm::allreduce(transport_, buffer, reduction, named, options);
  });
}

void Communicator::broadcast(Buffer buffer, int root, const Call& call) {
  recorded("broadcast", call, buffer,
           [&](const Call& named) { comm::broadcast(transport_, buffer, root, named); });
}

void Communicator::barrier(const Call& call) {
  recorded("barrier", call, Buffer(nullptr, 0, DType::u8), [&](const Call& named) {
    if (one_host() && shared_)
      shared_->barrier(named);
    else
      comm::barrier(transport_, named);
  });
}

std::string Communicator::choice(Buffer buffer) const {
  if (transport_.size() == 1) return "nothing";
  if (in_shared_memory()) return "shared memory";
  if (options_.reproducible) return "reproducible";
  const AllreduceOptions chosen =
      resolved(transport_, buffer.bytes(), buffer.dtype, message_options());
  return std::string(name_of(chosen.algorithm));
}

std::string Communicator::topology() const {
  const auto hosts = all_hosts(transport_);
  return fmt::format(
      "ring {} crosses between hosts {} times; {} hosts; ranks of a host exchange {}",
      format_ring_order(options_.ring_order), host_crossings(options_.ring_order, hosts),
      by_host_.size(), shared_ ? "in shared memory" : "messages");
}

}  // namespace renkei::comm
