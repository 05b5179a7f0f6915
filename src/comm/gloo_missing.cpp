#include "base/error.h"
#include "comm/peers.h"

namespace renkei::comm {

std::vector<std::unique_ptr<Peer>> make_gloo_peers(Transport&) {
  throw Error(ErrorCode::usage, "this renkei was built without Gloo to compare with",
              "install libgloo-dev and configure with -DRENKEI_GLOO=ON");
}

}  // namespace renkei::comm
