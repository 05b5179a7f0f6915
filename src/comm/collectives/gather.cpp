#include "comm/collectives/gather.h"

#include "comm/collectives/exchange.h"

namespace renkei::comm {

std::vector<std::string> gather_texts(Transport& transport, const std::string& mine,
                                      const Call& call) {
  const Call named = with_name(call, "gather");
  uint64_t length = mine.size();
  const auto length_bytes = std::as_writable_bytes(std::span(&length, 1));
  if (transport.rank() != 0) {
    send_and_wait(transport, 0, length_bytes, Tag::gather, named);
    send_and_wait(transport, 0, std::as_bytes(std::span(mine)), Tag::gather, named);
    return {};
  }
  std::vector<std::string> texts{mine};
  for (int rank = 1; rank < transport.size(); ++rank) {
    receive_and_wait(transport, rank, length_bytes, Tag::gather, named);
    std::string text(length, '\0');
    receive_and_wait(transport, rank, std::as_writable_bytes(std::span(text)), Tag::gather, named);
    texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace renkei::comm
