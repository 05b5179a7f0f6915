#include "data/s3/credentials.h"

#include <map>

#include "tests/data/expect_error.h"
#include "tests/data/temporary_directory.h"
#include "tests/data/write_file.h"

namespace renkei::data {
namespace {

class CredentialsTest : public testing::Test {
 protected:
  CredentialsTest() {
    variables_["HOME"] = home_.path().string();
    write_test_file(
        home_.path() / ".aws" / "credentials",
        "# keys\n[default]\naws_access_key_id = file_key\n"
        "aws_secret_access_key=file=secret\n\n"
        "[ lab ]\r\naws_access_key_id = lab_key\r\naws_secret_access_key = lab_secret\r\n"
        "aws_session_token = lab_token\r\n");
    write_test_file(home_.path() / ".aws" / "config",
                    "[default]\nregion = eu-west-1\ns3 =\n  region = not-this\n"
                    "[profile lab]\nregion = ap-northeast-1\nendpoint_url = http://store:9000\n");
  }

  S3Account find(const S3Options& options = {}) {
    return find_account(options, [&](const char* name) { return variables_[name]; });
  }

  TemporaryDirectory home_;
  std::map<std::string, std::string> variables_;
};

TEST_F(CredentialsTest, TheEnvironmentComesBeforeTheFiles) {
  variables_["AWS_ACCESS_KEY_ID"] = "key";
  variables_["AWS_SECRET_ACCESS_KEY"] = "secret";
  variables_["AWS_SESSION_TOKEN"] = "token";
  variables_["AWS_REGION"] = "us-west-2";
  variables_["AWS_ENDPOINT_URL"] = "http://here:1";
  const S3Account account = find();
  ASSERT_TRUE(account.keys);
  EXPECT_EQ(account.keys->access_key, "key");
  EXPECT_EQ(account.keys->secret_key, "secret");
  EXPECT_EQ(account.keys->session_token, "token");
  EXPECT_EQ(account.region, "us-west-2");
  EXPECT_EQ(account.endpoint, "http://here:1");
}

TEST_F(CredentialsTest, TheFilesHaveADefaultProfile) {
  const S3Account account = find();
  ASSERT_TRUE(account.keys);
  EXPECT_EQ(account.keys->access_key, "file_key");
  EXPECT_EQ(account.keys->secret_key, "file=secret");
  EXPECT_EQ(account.keys->session_token, "");
  EXPECT_EQ(account.region, "eu-west-1");
  EXPECT_EQ(account.endpoint, "");
}

TEST_F(CredentialsTest, AProfileIsReadFromBothFiles) {
  variables_["AWS_PROFILE"] = "lab";
  const S3Account account = find();
  ASSERT_TRUE(account.keys);
  EXPECT_EQ(account.keys->access_key, "lab_key");
  EXPECT_EQ(account.keys->session_token, "lab_token");
  EXPECT_EQ(account.region, "ap-northeast-1");
  EXPECT_EQ(account.endpoint, "http://store:9000");
}

TEST_F(CredentialsTest, SettingsComeFirst) {
  variables_["AWS_PROFILE"] = "lab";
  variables_["AWS_REGION"] = "us-west-2";
  const S3Account account = find({.endpoint = "https://other", .region = "here"});
  EXPECT_EQ(account.endpoint, "https://other");
  EXPECT_EQ(account.region, "here");
}

TEST_F(CredentialsTest, FilesMayBeElsewhere) {
  write_test_file(home_.path() / "keys",
                  "[default]\naws_access_key_id = a\naws_secret_access_key = b\n");
  variables_["AWS_SHARED_CREDENTIALS_FILE"] = (home_.path() / "keys").string();
  EXPECT_EQ(find().keys->access_key, "a");
}

TEST_F(CredentialsTest, WithoutAnyRequestsAreNotSigned) {
  variables_["HOME"] = "/nowhere";
  const S3Account account = find();
  EXPECT_FALSE(account.keys);
  EXPECT_EQ(account.region, "us-east-1");
}

TEST_F(CredentialsTest, HalfAPairIsRefused) {
  variables_["AWS_ACCESS_KEY_ID"] = "key";
  expect_error(ErrorCode::usage, "AWS_ACCESS_KEY_ID is set and AWS_SECRET_ACCESS_KEY is not",
               [&] { find(); });
}

TEST_F(CredentialsTest, AMissingProfileIsNamed) {
  variables_["AWS_PROFILE"] = "moon";
  expect_error(ErrorCode::usage, "there is no profile 'moon'", [&] { find(); });
}

}  // namespace
}  // namespace renkei::data
