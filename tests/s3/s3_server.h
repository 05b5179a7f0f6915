#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <string>

#include "data/storage/storage.h"
#include "tests/data/temporary_directory.h"

namespace renkei::data {

// A real server of object storage (tests/s3/server.js) with the bucket `data`, in a process of its
// own that can be killed. Sets the environment of this process to its keys.
class S3Server {
 public:
  S3Server();
  ~S3Server() { kill(); }
  S3Server(const S3Server&) = delete;

  void start();  // again, at the same address and with the same objects
  void kill();

  S3Options options() const;
  std::shared_ptr<const Storage> open() const {
    return open_storage("s3://data", {.s3 = options()});
  }

  // The next requests fail: see server.js.
  void fail(const std::string& kind, int count) const;
  int faults_left() const;

 private:
  TemporaryDirectory home_;
  pid_t process_ = -1;
  int port_ = 0;
};

// For tests with a server.
class S3Test : public testing::Test {
 protected:
  S3Server server_;
};

}  // namespace renkei::data
