#include "staging/message_cache.h"

#include <atomic>
#include <chrono>
#include <list>
#include <mutex>
#include <thread>

#include "comm/transport/tags.h"
#include "data/loader/sample_cache.h"

namespace renkei::staging {
namespace {

enum Tag : int { kAskTag = comm::kMessageCacheTags.first, kAnswerTag, kAnswerBytesTag, kGiftTag };
static_assert(kGiftTag < comm::kMessageCacheTags.end());

struct Ask {
  enum Kind : int64_t { find, keep, end };
  int64_t kind = find;
  int64_t sample = 0;
  int64_t length = 0;
};

struct Answer {
  static constexpr int64_t kNotThere = -1, kNotThereAndNoRoom = -2;
  int64_t length = 0;
};

template <typename Message>
std::span<std::byte> bytes_of(Message& message) {
  return std::as_writable_bytes(std::span(&message, 1));
}

// Peers ask every few milliseconds or not at all: a short sleep costs them little, and nobody else
// a core.
void pause(std::chrono::microseconds time) {
  std::this_thread::sleep_for(time);
}
constexpr std::chrono::microseconds kShortPause{50}, kLongPause{500};
constexpr int kShortPauses = 100;

class MessageCache : public data::PeerCache {
 public:
  MessageCache(comm::Transport& transport, double timeout_seconds)
      : transport_(transport),
        timeout_seconds_(timeout_seconds),
        peers_(static_cast<size_t>(transport.size())) {}

  ~MessageCache() override { abandon(); }

  bool is_mine(int64_t sample) const override { return owner(sample) == transport_.rank(); }

  std::shared_ptr<const std::string> ask(int64_t sample) override {
    Peer& peer = peers_[static_cast<size_t>(owner(sample))];
    const std::lock_guard one_at_a_time(peer.mutex);
    Ask asked{.kind = Ask::find, .sample = sample};
    Answer answer;
    comm::Request answered = transport_.receive(owner(sample), bytes_of(answer), kAnswerTag);
    complete(transport_.send(owner(sample), bytes_of(asked), kAskTag), owner(sample));
    complete(std::move(answered), owner(sample));
    if (answer.length < 0) {
      peer.has_room = answer.length != Answer::kNotThereAndNoRoom;
      return nullptr;
    }
    std::string bytes(static_cast<size_t>(answer.length), '\0');
    complete(transport_.receive(owner(sample), std::as_writable_bytes(std::span(bytes)),
                                kAnswerBytesTag),
             owner(sample));
    return std::make_shared<const std::string>(std::move(bytes));
  }

  void give(int64_t sample, const std::string& bytes) override {
    Peer& peer = peers_[static_cast<size_t>(owner(sample))];
    const std::lock_guard one_at_a_time(peer.mutex);
    if (!peer.has_room) return;
    Ask gift{.kind = Ask::keep, .sample = sample, .length = static_cast<int64_t>(bytes.size())};
    comm::Request announced = transport_.send(owner(sample), bytes_of(gift), kAskTag);
    complete(transport_.send(owner(sample), std::as_bytes(std::span(bytes)), kGiftTag),
             owner(sample));
    complete(std::move(announced), owner(sample));
  }

  void serve(data::SampleCache& cache) override {
    stopping_ = false;
    server_ = std::jthread([this, &cache] { answer_all(cache); });
  }

  void close() override {
    if (!server_.joinable()) return;
    try {
      Ask end{.kind = Ask::end};
      for (int rank = 0; rank < transport_.size(); ++rank)
        if (rank != transport_.rank())
          complete(transport_.send(rank, bytes_of(end), kAskTag), rank);
    } catch (const Error&) {  // a peer is gone: whoever waits for it says so
      return abandon();
    }
    server_.join();
  }

  void abandon() override {
    stopping_ = true;
    if (server_.joinable()) server_.join();
  }

 private:
  struct Peer {
    std::mutex mutex;
    bool has_room = true;
  };
  // What is on its way to a peer, and its memory.
  struct Sent {
    comm::Request request;
    Answer answer;
    std::shared_ptr<const std::string> bytes;
  };

  int owner(int64_t sample) const { return static_cast<int>(sample % transport_.size()); }

  // Unlike Transport::wait, sleeps at once: whoever waits here is a thread beside those that
  // compute.
  void complete(comm::Request request, int peer) {
    const comm::Call call{.operation = "a sample of its cache",
                          .timeout_seconds = timeout_seconds_};
    const double begin = transport_.clock().seconds();
    while (!transport_.done(request)) {
      if (stopping_) throw Error(ErrorCode::communication, "the job is ending");
      pause(kShortPause);
      if (transport_.clock().seconds() - begin > timeout_seconds_)
        comm::throw_timeout(transport_, peer, call);
    }
    transport_.wait(request, call);
  }

  void answer_all(data::SampleCache& cache) {
    const auto ranks = static_cast<size_t>(transport_.size());
    std::vector<Ask> asks(ranks);
    std::vector<comm::Request> asked(ranks);
    const auto listen = [&](size_t rank) {
      asked[rank] = transport_.receive(static_cast<int>(rank), bytes_of(asks[rank]), kAskTag);
    };
    std::vector<size_t> active;
    for (size_t rank = 0; rank < ranks; ++rank)
      if (static_cast<int>(rank) != transport_.rank()) {
        listen(rank);
        active.push_back(rank);
      }
    int idle = 0;
    while (!stopping_ && (!active.empty() || !sent_.empty())) {
      std::erase_if(sent_, [&](Sent& sent) { return transport_.done(sent.request); });
      bool heard = false;
      for (const size_t rank : std::vector(active)) {
        if (!transport_.done(asked[rank])) continue;
        transport_.wait(asked[rank], {});
        heard = true;
        if (asks[rank].kind == Ask::end) {
          std::erase(active, rank);
          continue;
        }
        try {
          answer(static_cast<int>(rank), asks[rank], cache);
        } catch (const Error&) {
          return;  // the peer is gone, which ends the job
        }
        listen(rank);
      }
      idle = heard ? 0 : idle + 1;
      if (!heard) pause(idle < kShortPauses ? kShortPause : kLongPause);
    }
  }

  void answer(int rank, const Ask& ask, data::SampleCache& cache) {
    if (ask.kind == Ask::keep) {
      std::string bytes(static_cast<size_t>(ask.length), '\0');
      complete(transport_.receive(rank, std::as_writable_bytes(std::span(bytes)), kGiftTag), rank);
      cache.keep(ask.sample, std::make_shared<const std::string>(std::move(bytes)));
      return;
    }
    const auto bytes = cache.find_here(ask.sample);
    const int64_t missing = cache.has_room() ? Answer::kNotThere : Answer::kNotThereAndNoRoom;
    Sent& head = sent_.emplace_back();
    head.answer.length = bytes ? static_cast<int64_t>(bytes->size()) : missing;
    head.request = transport_.send(rank, bytes_of(head.answer), kAnswerTag);
    if (!bytes) return;
    Sent& body = sent_.emplace_back();
    body.bytes = bytes;
    body.request = transport_.send(rank, std::as_bytes(std::span(*bytes)), kAnswerBytesTag);
  }

  comm::Transport& transport_;
  double timeout_seconds_;
  std::vector<Peer> peers_;
  std::list<Sent> sent_;  // of the server
  std::atomic<bool> stopping_ = false;
  std::jthread server_;
};

}  // namespace

std::unique_ptr<data::PeerCache> make_message_cache(comm::Transport& transport,
                                                    double timeout_seconds) {
  return std::make_unique<MessageCache>(transport, timeout_seconds);
}

}  // namespace renkei::staging
