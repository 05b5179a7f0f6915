#pragma once

#include "comm/transport/transport.h"

namespace renkei::comm {

// Returns on no rank before every rank has called it.
void barrier(Transport& transport, const Call& call = {});

}  // namespace renkei::comm
