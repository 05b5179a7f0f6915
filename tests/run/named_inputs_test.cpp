// A rank reads the fields that its stages use, and no others.
#include <gtest/gtest.h>

#include <atomic>

#include "tests/run/layouts.h"

namespace renkei::run {
namespace {

// Counts how often each field is read.
class CountedData : public data::Dataset {
 public:
  explicit CountedData(std::shared_ptr<const data::Dataset> data) : data_(std::move(data)) {}
  int64_t count() const override { return data_->count(); }
  const std::vector<data::Field>& fields() const override { return data_->fields(); }
  int64_t reads(size_t field) const { return reads_[field]; }

 private:
  void read_fields(int64_t sample, int64_t epoch,
                   std::span<const data::FieldSpan> into) const override {
    for (const data::FieldSpan& span : into) ++reads_[span.field];
    data_->read(sample, epoch, into);
  }

  std::shared_ptr<const data::Dataset> data_;
  mutable std::array<std::atomic<int64_t>, 2> reads_{};
};

TEST(NamedInputs, EachFieldIsReadByTheStageThatUsesIt) {
  TestCase test = test_case("lenet");
  const auto counted = std::make_shared<CountedData>(test.data);
  test.data = counted;
  test.options.steps = 3;
  const Layout layout{.stages = 2, .micro_batches = 2};
  train_by(test, plan_for(test, layout));
  EXPECT_EQ(counted->reads(0), 3 * test.batch);  // images, by the first stage
  EXPECT_EQ(counted->reads(1), 3 * test.batch);  // labels, by the last
}

}  // namespace
}  // namespace renkei::run
