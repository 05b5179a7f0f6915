#include "data/s3/s3_writer.h"

#include <utility>

namespace renkei::data {

S3Writer::S3Writer(std::shared_ptr<S3Client> client, S3Path path)
    : client_(std::move(client)), path_(std::move(path)) {}

S3Writer::~S3Writer() {
  if (!upload_.empty()) client_->abandon_upload(path_, upload_);
}

// An upload has up to 10,000 parts: they double in size every 1,000, which is enough for 8 TB.
size_t S3Writer::part_bytes() const {
  return size_t{8} << (20 + etags_.size() / 1000);
}

void S3Writer::append(std::string_view bytes) {
  size_ += static_cast<int64_t>(bytes.size());
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, part_bytes() - buffer_.size());
    buffer_ += piece;
    bytes.remove_prefix(piece.size());
    if (buffer_.size() == part_bytes()) send_part();
  }
}

void S3Writer::send_part() {
  if (upload_.empty()) upload_ = client_->begin_upload(path_);
  const int number = static_cast<int>(etags_.size()) + 1;
  etags_.push_back(client_->put_part(path_, upload_, number, buffer_));
  buffer_.clear();
}

void S3Writer::finish() {
  if (upload_.empty()) {
    client_->put(path_, buffer_);
    return;
  }
  if (!buffer_.empty()) send_part();
  client_->complete_upload(path_, upload_, etags_, size_);
  upload_.clear();
}

}  // namespace renkei::data
