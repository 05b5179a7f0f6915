#include "comm/collectives/reduce_scatter.h"

#include "comm/allreduce/ring.h"
#include "comm/collectives/exchange.h"

namespace renkei::comm {

Buffer reduce_scatter(Transport& transport, Buffer buffer, Reduction reduction, const Call& call,
                      Check check) {
  const Call named = with_name(call, "reduce_scatter");
  if (check == Check::agreement)
    check_agreement(transport,
                    {.collective = Collective::reduce_scatter,
                     .dtype = buffer.dtype,
                     .reduction = reduction,
                     .count = buffer.count},
                    named);
  return ring_reduce_scatter(transport, buffer, reduction, named);
}

}  // namespace renkei::comm
