#include "data/s3/s3_storage.h"

#include <algorithm>

#include "data/parallel.h"
#include "data/s3/s3_client.h"
#include "data/s3/s3_writer.h"

namespace renkei::data {
namespace {

// One request brings this much in a time that its delay does not rule; more of them run at once.
constexpr int64_t kPieceBytes = int64_t{8} << 20;
constexpr int kPiecesAtOnce = 4;

class S3File : public ByteFile {
 public:
  S3File(std::string name, std::shared_ptr<S3Client> client, S3Path path, S3Object object,
         std::shared_ptr<IoCounters> counters)
      : ByteFile(std::move(name), object.size),
        client_(std::move(client)),
        path_(std::move(path)),
        object_(std::move(object)),
        counters_(std::move(counters)) {}

 protected:
  void read_inside(int64_t offset, std::span<char> into) const override {
    const auto length = static_cast<int64_t>(into.size());
    const int64_t pieces = (length + kPieceBytes - 1) / kPieceBytes;
    parallel_for(pieces, kPiecesAtOnce, [&](int64_t piece) {
      const int64_t begin = piece * kPieceBytes;
      const auto part = into.subspan(static_cast<size_t>(begin),
                                     static_cast<size_t>(std::min(kPieceBytes, length - begin)));
      client_->read(path_, object_, offset + begin, part);
      counters_->reads.fetch_add(1, std::memory_order_relaxed);
      counters_->bytes.fetch_add(static_cast<int64_t>(part.size()), std::memory_order_relaxed);
    });
  }

 private:
  std::shared_ptr<S3Client> client_;
  S3Path path_;
  S3Object object_;
  std::shared_ptr<IoCounters> counters_;
};

class S3Storage : public Storage {
 public:
  explicit S3Storage(const S3Options& options)
      : client_(std::make_shared<S3Client>(options, find_account(options))) {}

  std::shared_ptr<const ByteFile> open(const std::string& path) const override {
    const S3Path place = parse_s3_path(path);
    const auto object = client_->find(place);
    if (!object)
      throw Error(ErrorCode::data, fmt::format("{}: there is no such object", path),
                  "check the path");
    counters_->opens.fetch_add(1, std::memory_order_relaxed);
    return std::make_shared<S3File>(path, client_, place, *object, counters_);
  }

  std::vector<StorageEntry> list(const std::string& directory) const override {
    const S3Path place = parse_s3_path(directory);
    const std::string prefix = prefix_of(place);
    std::vector<StorageEntry> found;
    bool exists = place.key.empty();
    std::string next;
    do {
      const S3Page page = client_->list(place.bucket, prefix, next);
      for (const S3Object& object : page.objects)
        add({.name = object.key.substr(prefix.size()), .size = object.size}, found);
      for (const std::string& inside : page.prefixes)
        add({.name = inside.substr(prefix.size(), inside.size() - prefix.size() - 1),
             .directory = true},
            found);
      exists = exists || !page.objects.empty() || !page.prefixes.empty();
      next = page.next;
    } while (!next.empty());
    if (!exists)
      throw Error(ErrorCode::data, fmt::format("{}: there is nothing below this prefix", directory),
                  "check the path");
    std::ranges::sort(found, {}, &StorageEntry::name);
    return found;
  }

  bool is_directory(const std::string& path) const override {
    const S3Path place = parse_s3_path(path);
    const bool any = client_->has_any(place.bucket, prefix_of(place));
    return any || place.key.empty();  // a bucket may be empty
  }

  bool is_file(const std::string& path) const override {
    const S3Path place = parse_s3_path(path);
    return !place.key.empty() && client_->find(place);
  }

  std::unique_ptr<ByteWriter> create(const std::string& path) const override {
    return std::make_unique<S3Writer>(client_, parse_s3_path(path));
  }
  void remove(const std::string& path) const override { client_->remove(parse_s3_path(path)); }
  std::shared_ptr<void> lock(const std::string&) const override { return nullptr; }

 private:
  static std::string prefix_of(const S3Path& place) {
    return place.key.empty() ? "" : place.key + "/";
  }
  // Without hidden entries, and without the empty object that some tools make for a directory.
  static void add(StorageEntry entry, std::vector<StorageEntry>& found) {
    if (!entry.name.empty() && !entry.name.starts_with('.')) found.push_back(std::move(entry));
  }

  std::shared_ptr<S3Client> client_;
};

}  // namespace

std::shared_ptr<const Storage> open_s3_storage(const S3Options& options) {
  return std::make_shared<S3Storage>(options);
}

}  // namespace renkei::data
