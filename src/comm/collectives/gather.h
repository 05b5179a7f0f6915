#pragma once

#include <string>
#include <vector>

#include "comm/transport/transport.h"

namespace renkei::comm {

// The texts of all ranks, on rank 0; the others get nothing. One message each, after its length.
std::vector<std::string> gather_texts(Transport& transport, const std::string& mine,
                                      const Call& call);

}  // namespace renkei::comm
