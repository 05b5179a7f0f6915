// How random is an order? Batches of a good one hold the classes in about the shares that the data
// set has. How far they are off is measured by Pearson's statistic of a batch of B samples,
//
//   X² = sum over the classes c of (n_c - B p_c)² / (B p_c),
//
// which is (C - 1) (N - B) / (N - 1) on average when batches are drawn at random from N samples of
// C classes. The quality is that number over the mean of X²: with quality q a batch varies like one
// of q B samples drawn at random. Runs of L neighbours of the same class have 1 / L, and runs in a
// data set that was shuffled before it was packed 1.
#pragma once

#include <cstdint>
#include <functional>

#include "data/sampler.h"

namespace renkei::data {

// Over up to 64 whole batches of the first epoch; at most 1. Without classes, or with one batch
// only, nothing can be told, and it is 1.
double shuffle_quality(const Sampler& sampler, int64_t classes,
                       const std::function<int64_t(int64_t sample)>& label);

}  // namespace renkei::data
