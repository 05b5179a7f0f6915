// The rewrites, in the order in which rewrite() does them. Each says in its file what it looks for
// and why that pays.
#pragma once

#include "rewrite/editor.h"
#include "rewrite/layout.h"
#include "rewrite/rewrite.h"

namespace renkei::rewrite {

// An operation that was in place: what it overwrote, and its result.
struct WasInPlace {
  ValueId self, result;
};
std::vector<WasInPlace> make_functional(Editor& editor);
// Operations that give what they are given: dropout of nothing, concatenation of one.
void remove_identities(Editor& editor, std::vector<Applied>& applied);
// Images in bf16.
void keep_channels_last(Editor& editor, std::vector<Applied>& applied);
// choose_layouts (layout.h)
void count_batches_in_kernel(Editor& editor);
void fuse_convolution_relu(Editor& editor, std::vector<Applied>& applied);
void fuse_batch_norm_tail(Editor& editor, std::vector<Applied>& applied);
void find_composed_gelu(Editor& editor, std::vector<Applied>& applied);
void use_dense_kernels(Editor& editor, const RewriteOptions& options,
                       std::vector<Applied>& applied);
void use_input_major_dense_kernels(Editor& editor, std::vector<Applied>& applied);
void use_row_kernels(Editor& editor, const RewriteOptions& options, std::vector<Applied>& applied);
void make_in_place(Editor& editor, const std::vector<WasInPlace>& operations);

}  // namespace renkei::rewrite
