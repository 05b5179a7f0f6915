// bf16 as torch.autocast does it on a CPU, as a rewrite.
//
// Operations that are fast in bf16 and keep their meaning (products of matrices, convolutions,
// attention) get their inputs cast to bf16; those that need range or precision (losses, products of
// many numbers, decompositions) get f32; a few take the widest of their inputs; all others take
// what comes, by PyTorch's rules of promotion. The lists are PyTorch's (tests/rewrite/
// autocast_lists_test.py compares them). Parameters stay f32 and are cast once, before their first
// use; gradients return through the casts. Outputs of the program get the dtype that they had, so
// the border to a loss or to another part of the network does not change.
//
// A cast is shared by all who need it. PyTorch does that for parameters only, and casts other
// values for each use; the difference is that their gradients are added up in bf16.
#pragma once

#include "rewrite/editor.h"
#include "rewrite/rewrite.h"

namespace renkei::rewrite {

enum class CastPolicy { follow, bf16, f32, widest, like_self };

// `target` as in a program: "aten.conv2d.default".
CastPolicy cast_policy(std::string_view target);

void use_bf16(Editor& editor, std::vector<Applied>& applied);

}  // namespace renkei::rewrite
