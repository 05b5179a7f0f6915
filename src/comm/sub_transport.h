// Some ranks of a transport as a transport of their own: member i of `ranks` is rank i of it.
// Errors name the ranks of the parent, which are the ones that people know.
#pragma once

#include <vector>

#include "comm/transport.h"

namespace renkei::comm {

class SubTransport : public Transport {
 public:
  // `channel` keeps the messages apart from those of the parent and of other views of it; 0 does
  // not. The collectives use channels below 16 for their own views, so callers take 16, 32 or 48.
  // This rank must be a member; the parent must outlive the view.
  SubTransport(Transport& parent, std::vector<int> ranks, int channel);

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(ranks_.size()); }
  const std::string& host(int rank) const override { return parent_.host(parent_rank(rank)); }
  int job_rank(int rank) const override { return parent_.job_rank(parent_rank(rank)); }
  Request send(int to, std::span<const std::byte> bytes, int tag) override;
  Request receive(int from, std::span<std::byte> bytes, int tag) override;
  void wait(Request& request, const Call& call) override { parent_.wait(request, call); }
  bool done(Request& request) override { return parent_.done(request); }
  std::shared_ptr<SharedRegion> share_among(const std::vector<int>& ranks, size_t bytes) override;

 private:
  int parent_rank(int rank) const;
  Transport& parent_;
  std::vector<int> ranks_;
  int tag_offset_;
  int rank_ = -1;
};

}  // namespace renkei::comm
