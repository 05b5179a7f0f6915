#include "data/pack/verify.h"

#include <algorithm>
#include <mutex>

#include "data/image/decode.h"
#include "data/source/npy.h"

namespace renkei::data {
namespace {

void check(const Source& source, int64_t sample, bool decode) {
  const std::string bytes = source.read(sample).bytes;
  if (source.layout()) return;
  const std::string name = source.describe(sample);
  if (looks_like_npy(bytes)) {  // an image or any other array
    parse_npy_header(bytes, name);
    return;
  }
  const ImageExtent extent = read_image_extent(bytes, name);
  if (!decode) return;
  Image image;
  decode_image_region(bytes, name, {0, 0, extent.width, extent.height}, 1, image);
}

}  // namespace

std::vector<BadSample> verify(const Source& source, const VerifyOptions& options) {
  std::mutex mutex;
  std::vector<BadSample> bad;
  parallel_for(
      source.count(), options.threads,
      [&](int64_t sample) {
        try {
          check(source, sample, options.decode);
        } catch (const Error& error) {
          if (error.code != ErrorCode::data) throw;
          const std::lock_guard lock(mutex);
          bad.push_back({sample, error.message});
        }
      },
      options.progress);
  std::ranges::sort(bad, {}, &BadSample::sample);
  return bad;
}

}  // namespace renkei::data
