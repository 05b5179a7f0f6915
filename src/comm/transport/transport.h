// How ranks exchange bytes. Collectives are written once, over this interface; it exists over MPI
// (production), over threads of one process (tests), and later over a simulated network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "comm/shared_memory/shared_region.h"
#include "comm/transport/channel_registry.h"

namespace renkei::comm {

// What a rank is doing, so that a wait that takes too long can be explained. Every blocking call
// takes one: there is no silent waiting.
struct Call {
  std::string_view operation = "exchange";  // "allreduce of the gradients"
  int64_t step = -1;                        // the training step, where there is one
  double timeout_seconds = 300;             // per wait, not for the whole collective
};

// A transfer under way. Its memory must stay where it is until wait() has returned. Destroying a
// request does not communicate; a request that is never waited for is only right when the job ends.
class Request {
 public:
  struct State {
    virtual ~State() = default;
  };
  Request() = default;
  explicit Request(std::unique_ptr<State> state) : state_(std::move(state)) {}
  State* state() const { return state_.get(); }

 private:
  std::unique_ptr<State> state_;  // empty: nothing to wait for
};

class Transport {
 public:
  Transport() = default;
  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const std::string& host(int rank) const = 0;
  // The number of a rank in the job, by which people know it.
  virtual int job_rank(int rank) const { return rank; }

  // What deadlines and measurements go by; a simulated network has a time of its own.
  virtual const Clock& clock() const { return real_clock(); }

  // Start a transfer. Messages between two ranks with the same tag arrive in the order in which
  // they were sent; any size is allowed, 0 included. Sizes on both sides must agree.
  virtual Request send(int to, std::span<const std::byte> bytes, int tag) = 0;
  virtual Request receive(int from, std::span<std::byte> bytes, int tag) = 0;

  // Returns when the transfer is complete. Throws a communication Error that names the peer, its
  // host, the operation and the step when call.timeout_seconds pass.
  virtual void wait(Request& request, const Call& call) = 0;
  // Whether wait() would return at once.
  virtual bool done(Request& request) = 0;
  // A rank whose message with this tag has come and has not been asked for; -1: none, or unknown.
  virtual int sender_of_next([[maybe_unused]] int tag) { return -1; }
  // Whether a rank's process is known to have ended: who waits for it need not wait longer.
  virtual bool has_ended([[maybe_unused]] int rank) const { return false; }

  // Memory shared by some ranks of this host, `bytes` for each; null where the transport has none.
  // All of them must call it together, with the ranks in the same order. Part i belongs to
  // ranks[i]. Like wait(), throws a Timeout that names a rank which does not come.
  std::shared_ptr<SharedRegion> share_among(const std::vector<int>& ranks, size_t bytes,
                                            const Call& call = {});
  // Among all ranks of this host: part i belongs to rank local_ranks(*this)[i].
  std::shared_ptr<SharedRegion> share(size_t bytes, const Call& call = {});
  // The second half of share_among(), when all have come.
  virtual std::shared_ptr<SharedRegion> make_region([[maybe_unused]] const std::vector<int>& ranks,
                                                    [[maybe_unused]] size_t bytes) {
    return nullptr;
  }

  // The views of this transport (tags.h), and the channel that it is itself.
  virtual ChannelRegistry& registry() { return registry_; }
  virtual int channel() const { return 0; }

  // All ranks together, at an orderly end, when nothing uses the transport or its shared memory any
  // more. Destructors never communicate: without this call, what only all ranks can free together
  // stays until the process ends.
  virtual void close() {}

 private:
  ChannelRegistry registry_;
};

// The ranks on the same host as this one, in rank order.
std::vector<int> local_ranks(const Transport& transport);

// "rank 3 (host n2)", for people.
std::string name_of_rank(const Transport& transport, int rank);

// The error of a wait that took too long: "rank 3 (host n2) waited 30 s for rank 4 (host n3) in
// allreduce, step 7". A type of its own, because whoever is waited for may itself be waiting.
struct Timeout : Error {
  using Error::Error;
};
[[noreturn]] void throw_timeout(const Transport& transport, int peer, const Call& call);

// For transports that run all ranks in one process. Usage Errors: no ranks, or not as many hosts.
void check_ranks_and_hosts(int ranks, const std::vector<std::string>& hosts);
// What they can say for sure: a message is not as long as its receive, or a rank has failed.
[[noreturn]] void throw_sizes_differ(const Transport& transport, int peer, size_t expected,
                                     size_t arrived, const Call& call);
[[noreturn]] void throw_failed(const Transport& transport, int failed, const Call& call);

}  // namespace renkei::comm
