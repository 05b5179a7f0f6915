#include "base/secrets.h"

#include <gtest/gtest.h>

namespace renkei {
namespace {

TEST(Secrets, AreNotShown) {
  EXPECT_EQ(without_secrets("'s3://key:hush@host/x' names no bucket"),
            "'s3://key:***@host/x' names no bucket");
  EXPECT_EQ(without_secrets("http://u:a:b@c@h:80/x and https://v:w@i"),
            "http://u:***@h:80/x and https://v:***@i");
  EXPECT_EQ(without_secrets("s3://b/a?X-Amz-Signature=abc&X-Amz-Date=1"),
            "s3://b/a?X-Amz-Signature=***&X-Amz-Date=1");
  EXPECT_EQ(without_secrets("token=abc, password='' api_key=1"),
            "token=***, password='' api_key=***");
}

TEST(Secrets, WhatIsNoneStays) {
  for (const char* text :
       {"", "a:b", "http://host:80/path", "s3://bucket/key@version", "rank=1,step=20", "://", "=",
        "x://", "model.hidden=12", "user@host: lr=0.1"})
    EXPECT_EQ(without_secrets(text), text);
}

}  // namespace
}  // namespace renkei
