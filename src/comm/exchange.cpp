#include "comm/exchange.h"

namespace renkei::comm {

Call with_name(Call call, std::string_view name) {
  if (call.operation == Call{}.operation) call.operation = name;
  return call;
}

void send_and_wait(Transport& transport, int to, std::span<const std::byte> bytes, Tag tag,
                   const Call& call) {
  Request sending = transport.send(to, bytes, static_cast<int>(tag));
  transport.wait(sending, call);
}

void receive_and_wait(Transport& transport, int from, std::span<std::byte> bytes, Tag tag,
                      const Call& call) {
  Request receiving = transport.receive(from, bytes, static_cast<int>(tag));
  transport.wait(receiving, call);
}

void exchange(Transport& transport, int to, std::span<const std::byte> outgoing, int from,
              std::span<std::byte> incoming, Tag tag, const Call& call) {
  Request receiving = transport.receive(from, incoming, static_cast<int>(tag));
  Request sending = transport.send(to, outgoing, static_cast<int>(tag));
  transport.wait(receiving, call);
  transport.wait(sending, call);
}

}  // namespace renkei::comm
