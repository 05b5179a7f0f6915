// The transport over MPI. An MPI count is an int, so a message is split into pieces below 2^31
// bytes; both sides compute the same pieces. Waiting polls: a blocking MPI_Wait could not notice
// that its deadline has passed, and spins at full speed where there are more ranks than cores.
#include "comm/mpi/mpi_transport.h"

#include <mpi.h>
#include <sched.h>
#include <sys/statvfs.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "base/error.h"
#include "base/units.h"

namespace renkei::comm {
namespace {

constexpr size_t kPiece = size_t{1} << 30;
constexpr size_t kPage = 4096;

struct MpiState : Request::State {
  // After an error, memory of a receive may be gone before its message comes. This is local.
  ~MpiState() override {
    for (MPI_Request& piece : pieces) {
      if (!receives || piece == MPI_REQUEST_NULL) continue;
      MPI_Cancel(&piece);
      MPI_Request_free(&piece);
    }
  }
  std::vector<MPI_Request> pieces;
  int peer = 0;
  bool receives = false;
};

// MPI libraries keep windows in /dev/shm, and what does not fit ends a process with a signal when
// it is first written to.
void check_room(size_t bytes) {
  struct statvfs system {};
  if (::statvfs("/dev/shm", &system) != 0) return;
  const size_t free = static_cast<size_t>(system.f_bavail) * system.f_frsize;
  if (free >= bytes) return;
  throw Error(ErrorCode::memory,
              fmt::format("ranks of a host share {} of memory, and /dev/shm has {} left",
                          format_size(static_cast<int64_t>(bytes)),
                          format_size(static_cast<int64_t>(free))),
              "give it more (docker run --shm-size=8g), or let ranks exchange messages: --set "
              "comm.shared_memory=false");
}

// An MPI-3 shared window among the ranks of one host.
class MpiSharedRegion : public SharedRegion {
 public:
  // The parts of a window follow each other, but libraries put the first behind data of their own.
  // Whole pages, and one more at the end, let every part start on a page.
  MpiSharedRegion(MPI_Comm host, size_t bytes) : bytes_((bytes + kPage - 1) / kPage * kPage) {
    int size = 0, me = 0;
    MPI_Comm_size(host, &size);
    MPI_Comm_rank(host, &me);
    void* mine = nullptr;
    MPI_Win_allocate_shared(static_cast<MPI_Aint>(bytes_ + (me + 1 == size ? kPage : 0)), 1,
                            MPI_INFO_NULL, host, &mine, &window_);
    MPI_Aint length = 0;
    int unit = 0;
    void* first = nullptr;
    MPI_Win_shared_query(window_, 0, &length, &unit, &first);
    const size_t past = reinterpret_cast<uintptr_t>(first) % kPage;
    std::byte* const begin = static_cast<std::byte*>(first) + (past ? kPage - past : 0);
    for (int rank = 0; rank < size; ++rank)
      parts_.push_back(begin + static_cast<size_t>(rank) * bytes_);
    // Touched first by its owner, so that the pages lie near it; new pages are zero.
    std::memset(parts_[static_cast<size_t>(me)], 0, bytes_);
    MPI_Barrier(host);
  }
  void close() override {
    if (window_ != MPI_WIN_NULL) MPI_Win_free(&window_);  // which makes it null
  }
  std::span<std::byte> part(int local_rank) const override {
    return {parts_.at(static_cast<size_t>(local_rank)), bytes_};
  }

 private:
  size_t bytes_;
  MPI_Win window_ = MPI_WIN_NULL;
  std::vector<std::byte*> parts_;
};

class MpiTransport : public Transport {
 public:
  MpiTransport(std::vector<std::string> hosts, BlockingCalls tell)
      : hosts_(std::move(hosts)), tell_(std::move(tell)) {
    MPI_Comm_dup(MPI_COMM_WORLD, &communicator_);
    MPI_Comm_rank(communicator_, &rank_);
    MPI_Comm_size(communicator_, &size_);
  }
  // In the order in which all ranks of each have made them.
  void close() override {
    const InsideOfMpi inside(tell_, "freeing of shared memory");
    for (const auto& region : regions_) region->close();
    regions_.clear();
    for (auto& [ranks, sharers] : sharers_) MPI_Comm_free(&sharers);
    sharers_.clear();
    if (communicator_ != MPI_COMM_NULL) MPI_Comm_free(&communicator_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const std::string& host(int rank) const override { return hosts_.at(static_cast<size_t>(rank)); }

  Request send(int to, std::span<const std::byte> bytes, int tag) override {
    return start(to, /*receives=*/false, bytes.size(),
                 [&](size_t at, int count, MPI_Request* request) {
                   MPI_Isend(bytes.data() + at, count, MPI_BYTE, to, tag, communicator_, request);
                 });
  }

  Request receive(int from, std::span<std::byte> bytes, int tag) override {
    return start(from, /*receives=*/true, bytes.size(),
                 [&](size_t at, int count, MPI_Request* request) {
                   MPI_Irecv(bytes.data() + at, count, MPI_BYTE, from, tag, communicator_, request);
                 });
  }

  std::shared_ptr<SharedRegion> make_region(const std::vector<int>& ranks, size_t bytes) override {
    check_room(ranks.size() * padded_to_pages(bytes));
    const InsideOfMpi inside(tell_, "setting up of shared memory");
    regions_.push_back(
        std::make_shared<MpiSharedRegion>(communicator_of(ranks), padded_to_pages(bytes)));
    return regions_.back();
  }

  bool done(Request& request) override {
    auto* state = static_cast<MpiState*>(request.state());
    if (!state) return true;
    int all = 0;  // pieces that were done before stay so
    MPI_Testall(static_cast<int>(state->pieces.size()), state->pieces.data(), &all,
                MPI_STATUSES_IGNORE);
    return all != 0;
  }

  int sender_of_next(int tag) override {
    int found = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, tag, communicator_, &found, &status);
    return found ? status.MPI_SOURCE : -1;
  }

  void wait(Request& request, const Call& call) override {
    auto* state = static_cast<MpiState*>(request.state());
    if (!state) return;
    const auto complete = [&] { return done(request); };
    // Most messages are there within microseconds; after that, let other ranks have the core.
    for (int spin = 0; spin < 200; ++spin)
      if (complete()) return finish(request);
    const double begin = clock().seconds();
    for (int64_t turn = 0; !complete(); ++turn) {
      if (turn < 20'000) {
        sched_yield();
      } else {
        const timespec pause{0, 50'000};
        nanosleep(&pause, nullptr);
      }
      if (clock().seconds() - begin > call.timeout_seconds) throw_timeout(*this, state->peer, call);
    }
    finish(request);
  }

 private:
  template <class Start>
  Request start(int peer, bool receives, size_t bytes, Start start_piece) {
    auto state = std::make_unique<MpiState>();
    state->peer = peer;
    state->receives = receives;
    state->pieces.resize(std::max<size_t>(1, (bytes + kPiece - 1) / kPiece));
    for (size_t piece = 0; piece < state->pieces.size(); ++piece) {
      const size_t at = piece * kPiece;
      start_piece(at, static_cast<int>(std::min(kPiece, bytes - at)), &state->pieces[piece]);
    }
    return Request(std::move(state));
  }

  static size_t padded_to_pages(size_t bytes) {
    constexpr size_t kPage = 4096;
    return std::max<size_t>(1, (bytes + kPage - 1) / kPage) * kPage;
  }

  // Only these ranks come together for it. By host name, not MPI_Comm_split_type: several "hosts"
  // may be containers of one machine.
  MPI_Comm communicator_of(const std::vector<int>& ranks) {
    const auto [place, is_new] = sharers_.try_emplace(ranks, MPI_COMM_NULL);
    if (!is_new) return place->second;
    MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
    MPI_Comm_group(communicator_, &all);
    MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &some);
    MPI_Comm_create_group(communicator_, some, ranks.front(), &place->second);
    MPI_Group_free(&some);
    MPI_Group_free(&all);
    return place->second;
  }

  static void finish(Request& request) { request = Request(); }

  std::vector<std::string> hosts_;
  BlockingCalls tell_;
  MPI_Comm communicator_ = MPI_COMM_NULL;
  std::vector<std::shared_ptr<MpiSharedRegion>> regions_;  // closed ones too, which are small
  std::map<std::vector<int>, MPI_Comm> sharers_;           // ranks of this host that share memory
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace

std::unique_ptr<Transport> make_mpi_transport(std::vector<std::string> hosts, BlockingCalls tell) {
  return std::make_unique<MpiTransport>(std::move(hosts), std::move(tell));
}

}  // namespace renkei::comm
