// GroupCollectives by messages, among ranks of any hosts: what a communicator chooses for each size
// (communicator.h), and pairwise exchange.
#pragma once

#include "comm/communicator.h"
#include "comm/group_collectives.h"

namespace renkei::comm {

class MessageCollectives : public GroupCollectives {
 public:
  // All ranks together. The transport outlives this object.
  MessageCollectives(Transport& transport, const CommunicatorOptions& options)
      : communicator_(transport, options) {}

  void reduce(ConstBuffer from, Buffer into, Reduction reduction, std::optional<int> root,
              const Call& call) override;
  void reduce_scatter(const std::vector<const std::byte*>& from, Buffer into, Reduction reduction,
                      const Call& call) override;
  void exchange(const Parts& parts, uint64_t count, const Call& call) override;
  void barrier(const Call& call) override { communicator_.barrier(call); }

 private:
  Communicator communicator_;
};

}  // namespace renkei::comm
