#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace renkei::data {

class SampleCache;

// What the other ranks of a job keep. Each sample has one rank that keeps it, if it has room, so
// that together they hold as much as all their memory, and nothing twice. May be called from many
// threads at once.
class PeerCache {
 public:
  virtual ~PeerCache() = default;

  virtual bool is_mine(int64_t sample) const = 0;  // whether this rank is the one
  // For samples of others. Null: it is not there.
  virtual std::shared_ptr<const std::string> ask(int64_t sample) = 0;
  virtual void give(int64_t sample, const std::string& bytes) = 0;

  // From now on, the others get their samples from this cache.
  virtual void serve(SampleCache& cache) = 0;
  // At an orderly end, while the cache is still there: waits until no rank needs any, all come
  // here. Does not throw.
  virtual void close() = 0;
  // At any other end: stops serving, without a word to the others. Who asks gets an Error.
  virtual void abandon() = 0;
};

}  // namespace renkei::data
