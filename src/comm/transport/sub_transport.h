// Some ranks of a transport as a transport of their own: member i of `ranks` is rank i of it.
// Errors name the ranks of the parent, which are the ones that people know.
#pragma once

#include <vector>

#include "comm/transport/tags.h"
#include "comm/transport/transport.h"

namespace renkei::comm {

class SubTransport : public Transport {
 public:
  // `channel`, one of tags.h, keeps the messages apart from those of the parent and of other views
  // of it; 0 does not. A bug Error when a view of the same ranks has it. This rank must be a
  // member; the parent must outlive the view.
  SubTransport(Transport& parent, std::vector<int> ranks, int channel);
  ~SubTransport() override;
  SubTransport(const SubTransport&) = delete;
  SubTransport& operator=(const SubTransport&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(ranks_.size()); }
  const std::string& host(int rank) const override { return parent_.host(parent_rank(rank)); }
  const Clock& clock() const override { return parent_.clock(); }
  int job_rank(int rank) const override { return parent_.job_rank(parent_rank(rank)); }
  Request send(int to, std::span<const std::byte> bytes, int tag) override;
  Request receive(int from, std::span<std::byte> bytes, int tag) override;
  void wait(Request& request, const Call& call) override { parent_.wait(request, call); }
  bool done(Request& request) override { return parent_.done(request); }
  int sender_of_next(int tag) override;
  bool has_ended(int rank) const override { return parent_.has_ended(parent_rank(rank)); }
  std::shared_ptr<SharedRegion> make_region(const std::vector<int>& ranks, size_t bytes) override;
  ChannelRegistry& registry() override { return parent_.registry(); }
  int channel() const override { return parent_.channel() + channel_; }

 private:
  int parent_rank(int rank) const;
  std::vector<int> ranks_in_job() const;
  int tag_here(int tag) const { return tag + channel_ * kTagsPerChannel; }

  Transport& parent_;
  std::vector<int> ranks_;
  int channel_;
  int rank_ = -1;
};

}  // namespace renkei::comm
