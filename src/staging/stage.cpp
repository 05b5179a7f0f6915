#include "staging/stage.h"

#include <algorithm>
#include <cstring>
#include <future>
#include <numeric>

#include "base/checksum.h"
#include "base/units.h"
#include "comm/choice/topology.h"
#include "comm/collectives/all_gather.h"
#include "comm/collectives/barrier.h"
#include "comm/collectives/broadcast.h"
#include "comm/transport/sub_transport.h"
#include "staging/staging_area.h"

namespace renkei::staging {
namespace {

// So many blocks in a round at most, which bounds the memory for them.
constexpr size_t kMostBlocksAtOnce = 16;
// After so many blocks that were only read back, ranks show each other that they are still there.
constexpr int64_t kBlocksBetweenSigns = 32;
constexpr size_t kChecksumBytes = sizeof(uint64_t);

// The first rank of each host works.
std::vector<int> workers_of(const comm::Transport& transport) {
  std::vector<int> order(static_cast<size_t>(transport.size()));
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::string> hosts;
  for (const int rank : order) hosts.push_back(transport.host(rank));
  std::vector<int> workers;
  for (const auto& ranks : comm::ranks_by_host(order, hosts)) workers.push_back(ranks.front());
  return workers;
}

std::string directory_on(const std::string& host, std::string directory) {
  constexpr std::string_view kHost = "{host}";
  for (size_t at = directory.find(kHost); at != std::string::npos; at = directory.find(kHost))
    directory.replace(at, kHost.size(), host);
  return directory;
}

StagePlan share_plan(comm::Transport& transport, const data::Storage& storage,
                     const StageOptions& options) {
  const comm::Call call{.operation = "broadcast of the list of files",
                        .timeout_seconds = options.timeout_seconds};
  std::string text;
  if (transport.rank() == 0)
    text = StagePlan::of(storage, options.source, options.block_bytes).text();
  auto length = static_cast<int64_t>(text.size());
  comm::broadcast(transport, std::span(&length, 1), 0, call);
  text.resize(static_cast<size_t>(length));
  comm::broadcast(
      transport,
      comm::Buffer{reinterpret_cast<std::byte*>(text.data()), text.size(), comm::DType::u8}, 0,
      call);
  return StagePlan::parse(text);
}

// What one host does.
class Worker {
 public:
  Worker(comm::Transport& all, comm::Transport& workers, const StagePlan& plan,
         std::shared_ptr<const data::Storage> storage, const StageOptions& options)
      : all_(all),
        workers_(workers),
        plan_(plan),
        storage_(std::move(storage)),
        options_(options),
        area_(directory_on(workers.host(workers.rank()), options.directory), plan),
        call_{.operation = "passing blocks on between hosts",
              .timeout_seconds = options.timeout_seconds} {}

  void find_what_is_there() {
    std::vector<uint8_t> mine(static_cast<size_t>(plan_.blocks()), 0);
    int64_t missing = 0;
    for (int64_t block = 0; block < plan_.blocks(); ++block) {
      const bool there =
          area_.is_complete() ? area_.checksum(block).has_value() : area_.check(block);
      mine[static_cast<size_t>(block)] = there;
      if (!there) missing += plan_.bytes_of(block);
      give_sign(block);
    }
    area_.require_space(missing);
    there_.resize(mine.size() * static_cast<size_t>(workers_.size()));
    comm::all_gather(workers_, bytes_of(mine), bytes_of(there_), call_);
    for (int64_t block = 0; block < plan_.blocks(); ++block)
      for (int host = 0; host < workers_.size(); ++host)
        if (!is_there(host, block)) {
          needed_.push_back(block);
          break;
        }
  }

  int64_t rounds() const {
    const size_t at_once = blocks_at_once();
    return static_cast<int64_t>((needed_.size() + at_once - 1) / at_once);
  }

  void begin_round(int64_t round) {
    if (round >= rounds()) return;
    next_ = std::async(std::launch::async, [this, round] { return read_mine(round); });
  }

  void run_round(int64_t round) {
    const std::string mine = next_.get();
    begin_round(round + 1);
    const auto shares = shares_of(round);
    std::vector<size_t> counts;
    for (const auto& blocks : shares) {
      counts.push_back(0);
      for (const int64_t block : blocks)
        counts.back() += static_cast<size_t>(plan_.bytes_of(block)) + kChecksumBytes;
    }
    std::string all(std::accumulate(counts.begin(), counts.end(), size_t{0}), '\0');
    comm::all_gather_v(workers_, comm::ConstBuffer(bytes_of(mine)), bytes_of(all), counts, call_);
    std::string_view rest = all;
    for (const auto& blocks : shares)
      for (const int64_t block : blocks) {
        const auto length = static_cast<size_t>(plan_.bytes_of(block));
        keep(block, rest.substr(0, length), rest.substr(length, kChecksumBytes));
        rest.remove_prefix(length + kChecksumBytes);
        done_ += static_cast<int64_t>(length);
      }
    if (options_.progress && workers_.rank() == 0) options_.progress(done_, needed_bytes());
  }

  void verify_and_finish() {
    area_.sync();
    for (int64_t block = 0; block < plan_.blocks(); ++block) {
      if (!is_there(workers_.rank(), block) && !area_.check(block))
        throw Error(ErrorCode::data,
                    fmt::format("block {} of {} does not come back from the disk as it was written",
                                block, directory()),
                    "check the disk of this host, and run the same command again");
      give_sign(block);
    }
    area_.finish();
  }

  // The numbers of all hosts; an Error when two of them have different bytes.
  StageResult compare() {
    Checksum checksum;
    for (int64_t block = 0; block < plan_.blocks(); ++block)
      checksum.add(fmt::format("{:016x},", area_.checksum(block).value_or(0)));
    const std::vector<int64_t> mine{static_cast<int64_t>(checksum.value()), read_, copied_};
    std::vector<int64_t> all(mine.size() * static_cast<size_t>(workers_.size()));
    comm::all_gather(workers_, std::span(mine), std::span(all), call_);
    StageResult result{.files = static_cast<int64_t>(plan_.files().size()),
                       .bytes = plan_.bytes(),
                       .hosts = workers_.size(),
                       .checksum = checksum.hex()};
    for (int host = 0; host < workers_.size(); ++host) {
      const auto at = static_cast<size_t>(host) * mine.size();
      if (all[at] != mine[0])
        throw Error(ErrorCode::data,
                    fmt::format("the copies of hosts {} and {} differ",
                                workers_.host(workers_.rank()), workers_.host(host)),
                    fmt::format("remove {} on both, and stage again", directory()));
      result.read_bytes += all[at + 1];
      result.copied_bytes += all[at + 2];
    }
    return result;
  }

 private:
  static comm::Buffer bytes_of(std::vector<uint8_t>& bytes) {
    return {reinterpret_cast<std::byte*>(bytes.data()), bytes.size(), comm::DType::u8};
  }
  static comm::Buffer bytes_of(std::string& bytes) {
    return {reinterpret_cast<std::byte*>(bytes.data()), bytes.size(), comm::DType::u8};
  }
  // Gathered from, never written to.
  static comm::Buffer bytes_of(const std::string& bytes) {
    return bytes_of(const_cast<std::string&>(bytes));
  }

  bool is_there(int host, int64_t block) const {
    return there_[static_cast<size_t>(host) * static_cast<size_t>(plan_.blocks()) +
                  static_cast<size_t>(block)] != 0;
  }
  std::string directory() const {
    return directory_on(workers_.host(workers_.rank()), options_.directory);
  }
  size_t blocks_at_once() const {
    return std::min(static_cast<size_t>(workers_.size()), kMostBlocksAtOnce);
  }
  int64_t needed_bytes() const {
    int64_t bytes = 0;
    for (const int64_t block : needed_) bytes += plan_.bytes_of(block);
    return bytes;
  }

  // So that no wait is as long as the whole work, all ranks meet now and then.
  void give_sign(int64_t block) {
    if ((block + 1) % kBlocksBetweenSigns == 0) comm::barrier(all_, call_);
  }

  // The hosts that have a block from before read it in turn, or else all hosts do, from the source.
  int reader_of(size_t index) const {
    std::vector<int> readers;
    for (int host = 0; host < workers_.size(); ++host)
      if (is_there(host, needed_[index])) readers.push_back(host);
    if (readers.empty()) return static_cast<int>(index % static_cast<size_t>(workers_.size()));
    return readers[index % readers.size()];
  }

  // The blocks of a round, by the host that reads them.
  std::vector<std::vector<int64_t>> shares_of(int64_t round) const {
    std::vector<std::vector<int64_t>> shares(static_cast<size_t>(workers_.size()));
    const size_t begin = static_cast<size_t>(round) * blocks_at_once();
    for (size_t i = begin; i < std::min(begin + blocks_at_once(), needed_.size()); ++i)
      shares[static_cast<size_t>(reader_of(i))].push_back(needed_[i]);
    return shares;
  }

  // Each block followed by its checksum.
  std::string read_mine(int64_t round) {
    std::string bytes;
    const auto shares = shares_of(round);
    for (const int64_t block : shares[static_cast<size_t>(workers_.rank())]) {
      const std::string content = read(block);
      const uint64_t checksum = Checksum().add(content).value();
      if (is_there(workers_.rank(), block) && checksum != area_.checksum(block))
        throw data::damaged(directory(), 0, fmt::format("block {} was changed", block));
      bytes += content;
      bytes.append(reinterpret_cast<const char*>(&checksum), kChecksumBytes);
    }
    return bytes;
  }

  std::string read(int64_t block) {
    if (is_there(workers_.rank(), block)) {
      copied_ += plan_.bytes_of(block);
      return area_.read(block);
    }
    std::string bytes(static_cast<size_t>(plan_.bytes_of(block)), '\0');
    const std::vector<Piece> pieces = plan_.pieces(block);
    data::parallel_for(static_cast<int64_t>(pieces.size()), options_.threads, [&](int64_t i) {
      const Piece& piece = pieces[static_cast<size_t>(i)];
      storage_->open(plan_.source_of(piece.file))
          ->read(piece.offset, std::span(bytes).subspan(static_cast<size_t>(piece.place),
                                                        static_cast<size_t>(piece.length)));
    });
    read_ += plan_.bytes_of(block);
    return bytes;
  }

  void keep(int64_t block, std::string_view bytes, std::string_view sent) {
    uint64_t checksum = 0;
    std::memcpy(&checksum, sent.data(), kChecksumBytes);
    if (Checksum().add(bytes).value() != checksum)
      throw Error(
          ErrorCode::communication,
          fmt::format("block {} arrived damaged at host {}", block, workers_.host(workers_.rank())),
          "check the network of this host, and run the same command again");
    if (!is_there(workers_.rank(), block)) area_.write(block, bytes, checksum);
  }

  comm::Transport& all_;
  comm::Transport& workers_;
  const StagePlan& plan_;
  std::shared_ptr<const data::Storage> storage_;
  const StageOptions& options_;
  StagingArea area_;
  comm::Call call_;
  std::vector<uint8_t> there_;   // by host, then by block
  std::vector<int64_t> needed_;  // blocks that some host has not
  std::future<std::string> next_;
  int64_t done_ = 0;
  int64_t read_ = 0, copied_ = 0;  // by this host
};

// A rank that only waits, and meets the others whenever they do.
void wait_for_workers(comm::Transport& all, const StagePlan& plan, const comm::Call& call) {
  const int64_t signs = plan.blocks() / kBlocksBetweenSigns;
  for (int64_t i = 0; i < signs; ++i) comm::barrier(all, call);
  int64_t rounds = 0;
  comm::broadcast(all, std::span(&rounds, 1), 0, call);
  for (int64_t round = 0; round < rounds; ++round) comm::barrier(all, call);
  for (int64_t i = 0; i < signs; ++i) comm::barrier(all, call);
  comm::barrier(all, call);
}

}  // namespace

StageResult stage(comm::Transport& transport, const StageOptions& options) {
  if (options.directory.starts_with("s3://"))
    throw Error(ErrorCode::usage, "data is staged to a directory of each host, not to s3://",
                "name a directory, or write to object storage with renkei data pack");
  const auto storage = data::open_storage(options.source, options.storage);
  const StagePlan plan = share_plan(transport, *storage, options);
  if (options.quota_bytes > 0 && plan.bytes() > options.quota_bytes)
    throw Error(ErrorCode::usage,
                fmt::format("{} has {}, more than the quota of {}", options.source,
                            format_size(plan.bytes()), format_size(options.quota_bytes)),
                "raise --quota, or pack a smaller data set");
  const comm::Call call{.operation = "waiting for the host's worker",
                        .timeout_seconds = options.timeout_seconds};
  const std::vector<int> ranks = workers_of(transport);
  if (std::ranges::count(ranks, transport.rank()) == 0) {
    wait_for_workers(transport, plan, call);
    return {};
  }
  comm::SubTransport workers(transport, ranks, comm::channels::kStaging);
  Worker worker(transport, workers, plan, storage, options);
  worker.find_what_is_there();
  int64_t rounds = worker.rounds();
  comm::broadcast(transport, std::span(&rounds, 1), 0, call);
  worker.begin_round(0);
  for (int64_t round = 0; round < rounds; ++round) {
    worker.run_round(round);
    comm::barrier(transport, call);
  }
  worker.verify_and_finish();
  StageResult result = worker.compare();
  comm::barrier(transport, call);
  return result;
}

}  // namespace renkei::staging
