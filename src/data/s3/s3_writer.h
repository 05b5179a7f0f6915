#pragma once

#include "data/s3/s3_client.h"
#include "data/storage/storage.h"

namespace renkei::data {

// Small content goes up at once, at the end; more of it in parts while it is written. What is given
// up is not seen by anybody.
class S3Writer : public ByteWriter {
 public:
  S3Writer(std::shared_ptr<S3Client> client, S3Path path);
  ~S3Writer() override;
  S3Writer(const S3Writer&) = delete;

  void append(std::string_view bytes) override;
  void finish() override;

 private:
  size_t part_bytes() const;
  void send_part();

  std::shared_ptr<S3Client> client_;
  S3Path path_;
  std::string buffer_;
  std::string upload_;  // empty: nothing was sent yet
  std::vector<std::string> etags_;
  int64_t size_ = 0;
};

}  // namespace renkei::data
