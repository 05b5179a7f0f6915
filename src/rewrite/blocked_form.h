// Which operations can be done on images in blocked layout, and how each is written there.
//
// An image is a value of batch × channels × height × width; in blocked layout it is a value of
// batch × channels/block × height × width × block (compute/blocked.h). The block is the preferred
// one where the channels fill it, and 8 where they fill that only. Convolutions, batch
// normalisation and pooling become kernels of renkei; element-wise operations are the same
// operations on other sizes.
#pragma once

#include <functional>

#include "rewrite/editor.h"
#include "rewrite/rewrite.h"

namespace renkei::rewrite {

// Where operations in blocked layout are written to.
class BlockedWriter {
 public:
  virtual ~BlockedWriter() = default;
  virtual ValueId blocked(ValueId image) = 0;  // in blocked layout, converted if need be
  virtual ValueId add_value(Value value) = 0;
  virtual void add(Op op) = 0;
};

struct BlockedForm {
  std::string why_not = {};          // not empty: it can't be done
  std::vector<ValueId> images = {};  // what it takes in blocked layout
  bool image_result = true;          // else its result is the same in both layouts
  double gain_bytes = 0;             // memory traffic that it saves, conversions not counted
  std::function<void(BlockedWriter&)> write = {};
};

struct ImageContext {
  const Editor& editor;
  const RewriteOptions& options;
  program::SymbolValues symbols;  // for estimates

  bool is_image(ValueId id) const;  // that may be blocked
  bool is_pixel(ValueId id) const;  // of height and width 1: the same bytes in both layouts
  int64_t block_for(int64_t channels) const;  // 1: they fill no blocks
  int64_t block_of(ValueId image) const;
  double bytes(ValueId id) const;
  std::vector<program::Size> blocked_sizes(ValueId id) const;
};

// Nothing: no operation on images.
std::optional<BlockedForm> blocked_form(const ImageContext& context, int place);

// One per kind of operation; `place` has the right target.
BlockedForm blocked_convolution(const ImageContext& context, int place);
BlockedForm blocked_batch_norm(const ImageContext& context, int place);
BlockedForm blocked_pooling(const ImageContext& context, int place);  // max_pool2d, avg_pool2d
BlockedForm blocked_mean(const ImageContext& context, int place);     // adaptive_avg_pool2d, mean
BlockedForm blocked_unary(const ImageContext& context, int place);    // element by element
BlockedForm blocked_binary(const ImageContext& context, int place);   // add, mul …
BlockedForm blocked_concatenation(const ImageContext& context, int place);
BlockedForm blocked_flatten(const ImageContext& context, int place);

}  // namespace renkei::rewrite
