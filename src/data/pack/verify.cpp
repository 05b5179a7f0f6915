#include "data/pack/verify.h"

#include <algorithm>
#include <mutex>

#include "data/image/decode.h"

namespace renkei::data {
namespace {

void check(const Source& source, int64_t sample, bool decode) {
  std::vector<std::string> records;
  for (int64_t record = 0; record < source.records(); ++record)
    records.push_back(source.read(sample, record));
  const std::string name = source.describe(sample);
  std::string scratch;
  for (const StoredField& field : source.fields()) {
    if (field.is_label()) continue;
    const std::string_view bytes =
        source.content(sample, field, records[static_cast<size_t>(field.record)], scratch);
    if (field.layout) continue;
    const ImageExtent extent = read_image_extent(bytes, name);
    if (!decode) continue;
    Image image;
    decode_image_region(bytes, name, {0, 0, extent.width, extent.height}, 1, image);
  }
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
