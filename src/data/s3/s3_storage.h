#pragma once

#include "data/storage/storage.h"

namespace renkei::data {

// Buckets of S3-compatible object storage, by paths s3://bucket/key. A directory is what keys have
// in common up to a slash. In builds without it, a usage Error.
std::shared_ptr<const Storage> open_s3_storage(const S3Options& options);

}  // namespace renkei::data
