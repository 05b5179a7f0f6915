// The twin of s3_storage.cpp for builds without libcurl.
#include "data/s3/s3_storage.h"

namespace renkei::data {

std::shared_ptr<const Storage> open_s3_storage(const S3Options&) {
  throw Error(ErrorCode::usage, "this renkei was built without S3 support",
              "install libcurl4-openssl-dev and libssl-dev and configure with -DRENKEI_S3=ON");
}

}  // namespace renkei::data
