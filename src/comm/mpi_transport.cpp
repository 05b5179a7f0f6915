// The transport over MPI. An MPI count is an int, so a message is split into pieces below 2^31
// bytes; both sides compute the same pieces. Waiting polls: a blocking MPI_Wait could not notice
// that its deadline has passed, and spins at full speed where there are more ranks than cores.
#include "comm/mpi_transport.h"

#include <mpi.h>
#include <sched.h>
#include <time.h>

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"

namespace renkei::comm {
namespace {

constexpr size_t kPiece = size_t{1} << 30;

struct MpiState : Request::State {
  std::vector<MPI_Request> pieces;
  int peer = 0;
};

class MpiTransport : public Transport {
 public:
  explicit MpiTransport(std::vector<std::string> hosts) : hosts_(std::move(hosts)) {
    MPI_Comm_dup(MPI_COMM_WORLD, &communicator_);
    MPI_Comm_rank(communicator_, &rank_);
    MPI_Comm_size(communicator_, &size_);
  }
  ~MpiTransport() override {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (!finalized) MPI_Comm_free(&communicator_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const std::string& host(int rank) const override { return hosts_.at(static_cast<size_t>(rank)); }

  Request send(int to, std::span<const std::byte> bytes, int tag) override {
    return start(to, bytes.size(), [&](size_t at, int count, MPI_Request* request) {
      MPI_Isend(bytes.data() + at, count, MPI_BYTE, to, tag, communicator_, request);
    });
  }

  Request receive(int from, std::span<std::byte> bytes, int tag) override {
    return start(from, bytes.size(), [&](size_t at, int count, MPI_Request* request) {
      MPI_Irecv(bytes.data() + at, count, MPI_BYTE, from, tag, communicator_, request);
    });
  }

  void wait(Request& request, const Call& call) override {
    auto* state = static_cast<MpiState*>(request.state());
    if (!state) return;
    const auto complete = [&] {
      int done = 0;
      MPI_Testall(static_cast<int>(state->pieces.size()), state->pieces.data(), &done,
                  MPI_STATUSES_IGNORE);
      return done != 0;
    };
    // Most messages are there within microseconds; after that, let other ranks have the core.
    for (int spin = 0; spin < 200; ++spin)
      if (complete()) return finish(request);
    const double begin = now_seconds();
    for (int64_t turn = 0; !complete(); ++turn) {
      if (turn < 20'000) {
        sched_yield();
      } else {
        const timespec pause{0, 50'000};
        nanosleep(&pause, nullptr);
      }
      if (now_seconds() - begin > call.timeout_seconds) throw_timeout(*this, state->peer, call);
    }
    finish(request);
  }

 private:
  template <class Start>
  Request start(int peer, size_t bytes, Start start_piece) {
    auto state = std::make_unique<MpiState>();
    state->peer = peer;
    state->pieces.resize(std::max<size_t>(1, (bytes + kPiece - 1) / kPiece));
    for (size_t piece = 0; piece < state->pieces.size(); ++piece) {
      const size_t at = piece * kPiece;
      start_piece(at, static_cast<int>(std::min(kPiece, bytes - at)), &state->pieces[piece]);
    }
    return Request(std::move(state));
  }

  static void finish(Request& request) { request = Request(); }

  std::vector<std::string> hosts_;
  MPI_Comm communicator_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace

std::unique_ptr<Transport> make_mpi_transport(std::vector<std::string> hosts) {
  return std::make_unique<MpiTransport>(std::move(hosts));
}

}  // namespace renkei::comm
