#include "bench/collective_case.h"

#include <gtest/gtest.h>

#include <list>

#include "comm/transport/thread_transport.h"

namespace renkei::bench {
namespace {

using comm::Buffer;
using comm::Collective;
using comm::Communicator;
using comm::DType;
using comm::Transport;

constexpr Collective kCollectives[] = {Collective::allreduce, Collective::reduce_scatter,
                                       Collective::all_gather, Collective::broadcast,
                                       Collective::all_to_all};
constexpr DType kTypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i64};
constexpr Buffers kKinds[] = {Buffers::once, Buffers::shared, Buffers::privates};

int64_t wrong_in(Communicator& communicator, Collective collective, DType dtype, Buffers kind,
                 size_t count) {
  std::vector<std::byte> own(count * comm::size_of(dtype)), other(own.size());
  const Buffer buffer = kind == Buffers::privates ? Buffer(own.data(), count, dtype)
                                                  : communicator.allocate(count, dtype);
  if (!CollectiveCase::exists(communicator, collective, kind, buffer)) return 0;
  CollectiveCase subject(communicator, collective, kind, buffer, {other.data(), count, dtype}, {});
  const int64_t wrong = subject.count_wrong();
  subject.run_from_other();
  communicator.barrier({});
  return wrong;
}

TEST(CollectiveCase, FindsNothingWrongWithOurCollectives) {
  for (const int ranks : {1, 2, 3, 4})
    comm::run_as_threads(ranks, [&](Transport& t) {
      Communicator in_memory(t, {}), by_messages(t, {.shared_memory = false});
      for (const Collective collective : kCollectives)
        for (const DType dtype : kTypes)
          for (const size_t count : {size_t{12}, size_t{12000}})
            for (const Buffers kind : kKinds)
              for (Communicator* communicator : {&in_memory, &by_messages})
                EXPECT_EQ(wrong_in(*communicator, collective, dtype, kind, count), 0)
                    << name_of(collective) << ' ' << name_of(dtype) << ' ' << name_of(kind);
    });
}

// Changes the first byte of every message that carries data.
class Careless : public Transport {
 public:
  explicit Careless(Transport& transport) : transport_(transport) {}
  int rank() const override { return transport_.rank(); }
  int size() const override { return transport_.size(); }
  const std::string& host(int rank) const override { return transport_.host(rank); }
  comm::Request send(int to, std::span<const std::byte> bytes, int tag) override {
    constexpr size_t kMostOfAnAgreement = 64;
    if (bytes.size() <= kMostOfAnAgreement) return transport_.send(to, bytes, tag);
    auto& changed = sent_.emplace_back(bytes.begin(), bytes.end());
    changed[0] ^= std::byte{0x40};
    return transport_.send(to, changed, tag);
  }
  comm::Request receive(int from, std::span<std::byte> bytes, int tag) override {
    return transport_.receive(from, bytes, tag);
  }
  bool done(comm::Request& request) override { return transport_.done(request); }
  void wait(comm::Request& request, const comm::Call& call) override {
    transport_.wait(request, call);
  }

 private:
  Transport& transport_;
  std::list<std::vector<std::byte>> sent_;
};

TEST(CollectiveCase, HasAResultOnceWhereAllRanksCanReadIt) {
  comm::run_as_threads(2, [&](Transport& t) {
    Communicator in_memory(t, {}), by_messages(t, {.shared_memory = false});
    const auto exists = [](Communicator& communicator, Collective collective) {
      return CollectiveCase::exists(communicator, collective, Buffers::once,
                                    communicator.allocate(10, DType::f32));
    };
    EXPECT_TRUE(exists(in_memory, Collective::allreduce));
    EXPECT_FALSE(exists(in_memory, Collective::all_gather));
    EXPECT_FALSE(exists(by_messages, Collective::allreduce));
  });
}

TEST(CollectiveCase, CountsWhatAFaultyNetworkChanges) {
  comm::run_as_threads(2, [&](Transport& t) {
    Careless careless(t);
    Communicator communicator(
        careless,
        {.algorithm = comm::Algorithm::ring, .segment_bytes = 1 << 20, .shared_memory = false});
    for (const DType dtype : kTypes) {
      const auto wrong = [&](Collective collective) {
        return wrong_in(communicator, collective, dtype, Buffers::privates, 1000);
      };
      // Two ranks send a message each; its first element is wrong where it arrives, and after an
      // allreduce the wrong sum goes back as well.
      EXPECT_EQ(wrong(Collective::reduce_scatter), 2);
      EXPECT_EQ(wrong(Collective::all_gather), 2);
      EXPECT_EQ(wrong(Collective::all_to_all), 2);
      EXPECT_EQ(wrong(Collective::broadcast), 1);
      EXPECT_GE(wrong(Collective::allreduce), 2);
    }
  });
}

TEST(CollectiveCase, KnowsTheFactorsOfTheBusBandwidth) {
  comm::run_as_threads(4, [&](Transport& t) {
    Communicator communicator(t, {});
    float buffer = 0, other = 0;
    const auto factor = [&](Collective collective) {
      return CollectiveCase(communicator, collective, Buffers::privates,
                            Buffer(std::span(&buffer, 1)), Buffer(std::span(&other, 1)), {})
          .bus_factor();
    };
    EXPECT_DOUBLE_EQ(factor(Collective::allreduce), 1.5);
    EXPECT_DOUBLE_EQ(factor(Collective::reduce_scatter), 0.75);
    EXPECT_DOUBLE_EQ(factor(Collective::all_gather), 0.75);
    EXPECT_DOUBLE_EQ(factor(Collective::all_to_all), 0.75);
    EXPECT_DOUBLE_EQ(factor(Collective::broadcast), 1);
  });
}

}  // namespace
}  // namespace renkei::bench
