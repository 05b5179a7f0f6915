// Against the worked examples of Amazon's documentation: "Signature calculations for the
// Authorization header" (S3) and the signature version 4 test suite (any service).
#include "data/s3/signature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace renkei::data {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

const std::string kEmptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

std::string sign_s3(SignedRequest request) {
  request.headers["host"] = "examplebucket.s3.amazonaws.com";
  request.headers["x-amz-date"] = "20130524T000000Z";
  request.headers["x-amz-content-sha256"] = request.payload_hash;
  return sign(request, {"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""},
              {.timestamp = "20130524T000000Z", .region = "us-east-1"});
}

std::string sign_any(SignedRequest request) {
  request.payload_hash = kEmptyHash;
  request.headers["host"] = "example.amazonaws.com";
  request.headers["x-amz-date"] = "20150830T123600Z";
  return sign(request, {"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", ""},
              {.timestamp = "20150830T123600Z", .region = "us-east-1", .service = "service"});
}

TEST(Signature, OfARangedGetIsAmazons) {
  EXPECT_EQ(sign_s3({.method = "GET",
                     .path = "/test.txt",
                     .headers = {{"range", "bytes=0-9"}},
                     .payload_hash = kEmptyHash}),
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
            "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, "
            "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST(Signature, OfAPutWithALetterThatMustBeEncodedIsAmazons) {
  EXPECT_THAT(
      sign_s3({.method = "PUT",
               .path = "/test$file.text",
               .headers = {{"date", "Fri, 24 May 2013 00:00:00 GMT"},
                           {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
               .payload_hash = sha256_hex("Welcome to Amazon S3.")}),
      EndsWith("Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"));
}

TEST(Signature, OfAQueryWithoutAValueIsAmazons) {
  EXPECT_THAT(
      sign_s3(
          {.method = "GET", .path = "/", .query = {{"lifecycle", ""}}, .payload_hash = kEmptyHash}),
      EndsWith("Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"));
}

TEST(Signature, OfAListIsAmazons) {
  EXPECT_THAT(
      sign_s3({.method = "GET",
               .path = "/",
               .query = {{"prefix", "J"}, {"max-keys", "2"}},
               .payload_hash = kEmptyHash}),
      EndsWith("Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"));
}

TEST(Signature, OfTheTestSuiteIsAmazons) {
  EXPECT_THAT(
      sign_any({.method = "GET", .path = "/"}),
      EndsWith("Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"));
  EXPECT_THAT(
      sign_any({.method = "POST", .path = "/"}),
      EndsWith("Signature=5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"));
  EXPECT_THAT(
      sign_any(
          {.method = "GET", .path = "/", .query = {{"Param2", "value2"}, {"Param1", "value1"}}}),
      EndsWith("Signature=b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"));
  EXPECT_THAT(
      sign_any({.method = "GET",
                .path = "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"}),
      EndsWith("Signature=07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"));
  EXPECT_THAT(
      sign_any({.method = "GET", .path = "/\u1234"}),
      EndsWith("Signature=8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"));
}

TEST(Signature, BlanksOfHeadersAreThoseOfTheTestSuite) {
  EXPECT_THAT(
      sign_any({.method = "GET",
                .path = "/",
                .headers = {{"my-header1", "  value1 "}, {"my-header2", " \"a   b   c\" "}}}),
      EndsWith("Signature=acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"));
}

TEST(Signature, EncodesWhatUrlsDoNotAllow) {
  EXPECT_EQ(encode_uri("a b/c+d~e&\xC3\xA9", true), "a%20b/c%2Bd~e%26%C3%A9");
  EXPECT_EQ(encode_uri("a/b", false), "a%2Fb");
  EXPECT_EQ(encode_query({{"prefix", "dir/"}, {"list-type", "2"}, {"uploads", ""}}),
            "list-type=2&prefix=dir%2F&uploads=");
}

TEST(Signature, TimesAreThoseOfGreenwich) {
  EXPECT_EQ(format_timestamp(0), "19700101T000000Z");
  EXPECT_EQ(format_timestamp(1369353600.9), "20130524T000000Z");
}

TEST(Signature, DependsOnEveryPart) {
  const SignedRequest request{.method = "GET", .path = "/a"};
  SignedRequest other = request;
  other.path = "/b";
  EXPECT_NE(sign_any(request), sign_any(other));
  EXPECT_THAT(canonical_request({.method = "GET", .path = "/a", .headers = {{"host", "h"}}}),
              HasSubstr("GET\n/a\n\nhost:h\n\nhost\n"));
}

}  // namespace
}  // namespace renkei::data
