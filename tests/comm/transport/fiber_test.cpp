#include "comm/transport/fiber.h"

#include <gtest/gtest.h>

#include <exception>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace renkei::comm {
namespace {

constexpr size_t kStack = 256 << 10;

TEST(Fiber, GoesOnWhereItStopped) {
  std::string story;
  std::unique_ptr<Fiber> a, b;
  const auto tell = [&](std::unique_ptr<Fiber>& self, const std::string& name) {
    for (int i = 0; i < 3; ++i) {
      story += name + std::to_string(i) + " ";
      self->suspend();
    }
  };
  a = std::make_unique<Fiber>(kStack, [&] { tell(a, "a"); });
  b = std::make_unique<Fiber>(kStack, [&] { tell(b, "b"); });
  while (!a->ended() || !b->ended()) {
    if (!a->ended()) a->resume();
    if (!b->ended()) b->resume();
  }
  EXPECT_EQ(story, "a0 b0 a1 b1 a2 b2 ");
}

TEST(Fiber, KeepsWhatLiesOnItsStack) {
  constexpr int kFibers = 100;
  std::vector<std::unique_ptr<Fiber>> fibers(kFibers);
  std::vector<int> sums(kFibers);
  for (int f = 0; f < kFibers; ++f) {
    const auto body = [&fibers, &sums, f] {
      int values[1000];
      for (int i = 0; i < 1000; ++i) {
        values[i] = f + i;
        if (i % 100 == 0) fibers[static_cast<size_t>(f)]->suspend();
      }
      sums[static_cast<size_t>(f)] = std::accumulate(values, values + 1000, 0);
    };
    fibers[static_cast<size_t>(f)] = std::make_unique<Fiber>(kStack, body);
  }
  for (bool all = false; !all;) {
    all = true;
    for (const auto& fiber : fibers)
      if (!fiber->ended()) fiber->resume(), all = false;
  }
  for (int f = 0; f < kFibers; ++f) EXPECT_EQ(sums[static_cast<size_t>(f)], 1000 * f + 499'500);
}

// Each handles an exception, stops in the middle of that, and goes on after the other has begun and
// ended the same.
TEST(Fiber, HasExceptionsOfItsOwn) {
  std::vector<std::unique_ptr<Fiber>> fibers(2);
  std::vector<std::string> told(2);
  for (size_t f = 0; f < 2; ++f)
    fibers[f] = std::make_unique<Fiber>(kStack, [&, f] {
      try {
        try {
          throw std::runtime_error("of " + std::to_string(f));
        } catch (const std::exception&) {
          fibers[f]->suspend();
          throw;
        }
      } catch (const std::exception& error) {
        told[f] = error.what();
      }
      EXPECT_EQ(std::uncaught_exceptions(), 0);
      EXPECT_EQ(std::current_exception(), nullptr);
    });
  for (const size_t f : {0, 1, 0, 1}) fibers[f]->resume();
  EXPECT_EQ(told, (std::vector<std::string>{"of 0", "of 1"}));
}

TEST(Fiber, MayNeverBegin) {
  const Fiber fiber(kStack, [] { FAIL(); });
  EXPECT_FALSE(fiber.ended());
}

}  // namespace
}  // namespace renkei::comm
