// The transport among processes of one host that no MPI has started (torchrun): through memory that
// they share. From each rank to each other leads a pipe, a ring of bytes that one writes and one
// reads, in the memory of the reader. A message is a head (tag and length) and its bytes; what does
// not fit waits at the sender, and what nobody has asked for yet is kept at the receiver. Nothing
// moves by itself: whoever waits, or asks whether something is done, moves all that can be moved.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/transport/transport.h"

namespace renkei::comm {

// How ranks that know nothing of each other meet: a table of texts that all see. get() waits for
// the rank that puts it, and throws an Error that names it.
struct Rendezvous {
  std::function<void(const std::string& key, const std::string& value)> put;
  std::function<std::string(const std::string& key, int rank)> get;
};

struct HostTransportOptions {
  std::string host = "localhost";
  std::vector<int> job_ranks = {};  // by which people know the ranks; empty: 0, 1, …
};

// All ranks together.
std::unique_ptr<Transport> make_host_transport(int rank, int size, const Rendezvous& rendezvous,
                                               const HostTransportOptions& options);

}  // namespace renkei::comm
