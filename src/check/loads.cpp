#include "check/loads.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "base/clock.h"
#include "dense/product.h"

namespace renkei::check {
namespace {

constexpr int kOrder = 384;  // small enough that a window holds many, large enough for full speed
constexpr double kWindowSeconds = 0.2;
constexpr size_t kChunk = 4 << 20, kChunks = 16;

class ScratchFile {
 public:
  explicit ScratchFile(const std::filesystem::path& directory) {
    std::string name = (directory / "renkei-check-XXXXXX").string();
    descriptor = ::mkstemp(name.data());
    if (descriptor >= 0) ::unlink(name.c_str());
  }
  ~ScratchFile() {
    if (descriptor >= 0) ::close(descriptor);
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  int descriptor = -1;
};

}  // namespace

double best_product_rate(bool double_precision, int threads, double seconds) {
  const auto precision = double_precision ? dense::Precision::f64 : dense::Precision::f32;
  const double end = now_seconds() + seconds;
  double best = 0;
  do
    best = std::max(best,
                    dense::sustained_flops_per_second(precision, kOrder, threads, kWindowSeconds));
  while (now_seconds() < end);
  return best;
}

std::vector<double> product_rates_over_time(int threads, double seconds,
                                            const std::function<void(double)>& progress) {
  std::vector<double> rates;
  const double begin = now_seconds();
  do {
    rates.push_back(dense::sustained_flops_per_second(dense::Precision::f64, kOrder, threads, 1.0));
    if (progress) progress(now_seconds() - begin);
  } while (now_seconds() - begin < seconds);
  return rates;
}

std::optional<DiskSpeed> disk_speed(const std::filesystem::path& directory) {
  const ScratchFile file(directory);
  if (file.descriptor < 0) return std::nullopt;
  std::string chunk(kChunk, 'x');
  for (size_t i = 0; i < kChunk; i += 512) chunk[i] = static_cast<char>(i / 512 % 251);
  DiskSpeed speed;
  double begin = now_seconds();
  for (size_t i = 0; i < kChunks; ++i)
    if (::write(file.descriptor, chunk.data(), kChunk) != static_cast<ssize_t>(kChunk))
      return std::nullopt;
  if (::fsync(file.descriptor) != 0) return std::nullopt;
  speed.write_bytes_per_second = kChunk * kChunks / (now_seconds() - begin);
  ::posix_fadvise(file.descriptor, 0, 0, POSIX_FADV_DONTNEED);
  begin = now_seconds();
  for (size_t i = 0; i < kChunks; ++i)
    if (::pread(file.descriptor, chunk.data(), kChunk, static_cast<off_t>(i * kChunk)) !=
        static_cast<ssize_t>(kChunk))
      return std::nullopt;
  speed.read_bytes_per_second = kChunk * kChunks / (now_seconds() - begin);
  return speed;
}

}  // namespace renkei::check
