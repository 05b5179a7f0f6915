// A server that fails: what may pass is tried again, what does not is one sentence, and nothing
// hangs.
#include <gtest/gtest.h>

#include "base/clock.h"
#include "tests/data/expect_error.h"
#include "tests/s3/s3_server.h"

namespace renkei::data {
namespace {

class S3FaultsTest : public S3Test {
 protected:
  S3FaultsTest() {
    server_.open()->write("s3://data/x", "content");
    file_ = server_.open()->open("s3://data/x");
  }

  std::shared_ptr<const Storage> open(double timeout_seconds, double patience_seconds) const {
    S3Options options = server_.options();
    options.timeout_seconds = timeout_seconds;
    options.patience_seconds = patience_seconds;
    return open_storage("s3://data", {.s3 = options});
  }

  std::shared_ptr<const ByteFile> file_;
};

TEST_F(S3FaultsTest, WhatMayPassIsTriedAgain) {
  for (const char* kind : {"500", "502", "503", "504", "429", "drop"}) {
    server_.fail(kind, 3);
    EXPECT_EQ(file_->read(3, 4), "tent") << kind;
    EXPECT_EQ(server_.faults_left(), 0) << kind;
  }
}

TEST_F(S3FaultsTest, WhatDoesNotPassIsToldAtOnce) {
  server_.fail("403", 1);
  expect_error(ErrorCode::usage, "s3://data/x: the object storage refused access (status 403)",
               [&] { file_->read(0, 7); });
  server_.fail("404", 1);
  expect_error(ErrorCode::data, "s3://data/x: there is no such object (status 404)",
               [&] { file_->read(0, 7); });
  server_.fail("416", 1);
  expect_error(ErrorCode::data, "s3://data/x: the object became shorter while it was read",
               [&] { file_->read(0, 7); });
  server_.fail("301", 1);
  expect_error(ErrorCode::usage, "s3://data/x: the bucket is in another region",
               [&] { file_->read(0, 7); });
  server_.fail("418", 1);
  expect_error(ErrorCode::data, "s3://data/x: the object storage refused the request (status 418)",
               [&] { file_->read(0, 7); });
}

TEST_F(S3FaultsTest, PatienceEnds) {
  server_.fail("503", 1'000);
  expect_error(ErrorCode::communication, "s3://data/x: the object storage at 127.0.0.1:", [&] {
    open(5, 1)->open("s3://data/x");
  });
  EXPECT_LT(server_.faults_left(), 999);  // it was tried more than once
}

TEST_F(S3FaultsTest, AServerThatDoesNotAnswerIsLeft) {
  server_.fail("stall", 1);
  EXPECT_EQ(open(1, 30)->read("s3://data/x"), "content");
  server_.fail("stall", 1'000);
  const double begin = now_seconds();
  expect_error(ErrorCode::communication,
               "the object storage at 127.0.0.1:", [&] { open(1, 0)->open("s3://data/x"); });
  EXPECT_LT(now_seconds() - begin, 8);  // 2 s, on a machine that is busy with other things
}

TEST_F(S3FaultsTest, NobodyAtTheAddressIsNoMatterOfMinutes) {
  server_.kill();
  try {
    open(5, 1)->open("s3://data/x");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, ErrorCode::communication);
    EXPECT_NE(error.hint.find("check the address"), std::string::npos) << error.hint;
  }
}

TEST_F(S3FaultsTest, AnAnswerThatIsLostDoesNotLoseTheWrite) {
  const auto storage = server_.open();
  server_.fail("lose", 1);
  storage->write("s3://data/y", "small");
  EXPECT_EQ(storage->read("s3://data/y"), "small");

  const std::string content(9 << 20, 'y');
  const auto writer = storage->create("s3://data/long");
  server_.fail("lose", 1);
  writer->append(content);  // beginning the upload is lost, and begun again
  server_.fail("503", 2);
  writer->append(content);
  writer->append(content);
  server_.fail("lose", 1);
  writer->finish();
  EXPECT_TRUE(storage->read("s3://data/long") == content + content + content);
  EXPECT_EQ(server_.faults_left(), 0);
}

TEST_F(S3FaultsTest, AnEndpointThatIsNoneIsRefused) {
  for (const char* endpoint : {"store:9000", "ftp://store", "http://"})
    expect_error(ErrorCode::usage, "is no address", [&] {
      open_storage("s3://data", {.s3 = {.endpoint = endpoint}})->open("s3://data/x");
    });
}

}  // namespace
}  // namespace renkei::data
