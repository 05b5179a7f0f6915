#include "comm/allreduce/torus.h"

#include "base/error.h"
#include "comm/collectives/exchange.h"
#include "comm/transport/sub_transport.h"

namespace renkei::comm {

int square_columns(int ranks) {
  int64_t columns = 1;
  while (columns * columns < ranks || ranks % columns != 0) ++columns;
  return static_cast<int>(columns);
}

void torus_allreduce(Transport& transport, Buffer buffer, Reduction reduction, const Call& call,
                     const TorusOptions& options) {
  const int n = transport.size();
  const int columns = options.columns > 0 ? options.columns : square_columns(n);
  if (n % columns != 0)
    throw Error(ErrorCode::usage,
                fmt::format("a torus of {} ranks cannot have {} columns", n, columns),
                "the number of columns must divide the number of ranks");
  const std::vector<int> order = checked_order(options.order, n);
  const int place = place_of(order, transport.rank());
  const int my_row = place / columns, my_column = place % columns;
  std::vector<int> in_row, in_column;
  for (int c = 0; c < columns; ++c)
    in_row.push_back(order.at(static_cast<size_t>(my_row) * static_cast<size_t>(columns) +
                              static_cast<size_t>(c)));
  for (int row = 0; row < n / columns; ++row)
    in_column.push_back(order.at(static_cast<size_t>(row) * static_cast<size_t>(columns) +
                                 static_cast<size_t>(my_column)));

  SubTransport row(transport, in_row, channels::kTorusRow),
      column(transport, in_column, channels::kTorusColumn);
  const RingOptions ring{.segment_bytes = options.segment_bytes};
  const Reduction partial = reduction == Reduction::mean ? Reduction::sum : reduction;
  const Buffer chunk = ring_reduce_scatter(row, buffer, partial, call, ring);
  ring_allreduce(column, chunk, partial, call, ring);
  finish_mean(chunk, reduction, n);
  ring_all_gather(row, chunks_by_place(buffer, checked_order({}, columns)), call, ring);
}

}  // namespace renkei::comm
