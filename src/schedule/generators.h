// The orders in which the groups of a pipeline compute. A generator gives forward and backward
// tasks only: what they need (load, expect, receive) and what follows (send, reduce, update) is the
// same for all and added by `with_transfers`.
//
// In the drawings time goes to the right, a row is a group, a digit the forward of that
// micro-batch, a letter its backward (a for 0, b for 1, …), a dot waiting; forward and backward
// take one unit.
#pragma once

#include "schedule/schedule.h"

namespace renkei::schedule {

// GPipe (Huang et al., 2018): all forwards, then all backwards. Every micro-batch is in flight at
// the turn. 3 groups, 4 micro-batches:
//
//   0123....abcd
//   .0123..abcd.
//   ..0123abcd..
Schedule gpipe(const plan::Shape& shape);

// 1F1B, also PipeDream-Flush (Narayanan et al., 2019 and 2020): after a warm-up that fills the
// pipeline each group alternates, so group g of n has at most n - g micro-batches in flight, in the
// same time as GPipe.
//
//   012..a3b.c.d
//   .01.a2b3c.d.
//   ..0a1b2c3d..
Schedule one_f_one_b(const plan::Shape& shape);

// Interleaved 1F1B (Narayanan et al., 2021): each group has several smaller stages, so that the
// pipeline fills faster: the bubble shrinks by the number of chunks, for as many times the
// messages. Micro-batches go in rounds of as many as there are groups, through one chunk after the
// other. 2 groups, 2 chunks, 4 micro-batches; group 0 computes 0 and 1 on its first stage, then 0
// and 1 on its second, and so on. A unit is half as long as above.
//
//   01012a3b2a3b.c.dcd
//   .010a1b2a3b2c3dcd.
Schedule interleaved(const plan::Shape& shape);

// Zero bubble, H1 (Qi et al., 2023): 1F1B with backward in two parts. The gradient of the inputs
// (letters) goes on to the group before at once; that of the parameters (') waits for a time when
// there is nothing else to do, but not so long that a group has more micro-batches in flight than
// the first one. With forward and both parts of equal length the bubble is a third of 1F1B's.
//
//   012..a'3b'c'd'
//   .01.a2b'3c'd''
//   ..0a1b2c'3d'''
Schedule zero_bubble(const plan::Shape& shape);

// Adds loads and transfers, and at the end of a step, where there is a backward, what it takes to
// update the parameters.
Schedule with_transfers(const Schedule& compute, const plan::Shape& shape, const StepParts& parts);

}  // namespace renkei::schedule
