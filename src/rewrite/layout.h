// Which images are kept in blocked layout.
//
// Every operation that has a blocked form (blocked_form.h) is done in blocked or in plain layout.
// In plain layout, what the blocked form gains is lost; between two operations of different layout
// the image is converted, once for all who need it, and its gradient is converted back. The
// cheapest choice of all is a minimum cut between the operations that must be plain and those that
// gain most:
//
//   plain ──infinite──► an operation without blocked form, an input
//   an operation with gain g ──g──► blocked           (paid if it stays plain)
//   producer ──bytes──► v ──infinite──► users of v    (paid once if the producer is plain and any
//                                                      user blocked; the same the other way round)
//
// So a single ReLU or batch normalisation between plain operations stays as it is, and one between
// two convolutions follows them. Images of one pixel are the same bytes in both layouts, and their
// conversion, a view, is free.
#pragma once

#include "rewrite/editor.h"
#include "rewrite/rewrite.h"

namespace renkei::rewrite {

void choose_layouts(Editor& editor, const RewriteOptions& options, std::vector<Applied>& applied);

}  // namespace renkei::rewrite
