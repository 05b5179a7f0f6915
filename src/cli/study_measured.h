// The part of a study that this machine can do: short runs of renkei itself, at its own scale.
#pragma once

#include "study/study.h"

namespace renkei::cli {

void measure_flow(study::Study& study);      // steps and start-up on 1 to 4 ranks
void measure_mn1(study::Study& study);       // ResNet-50 on 1 and 2 ranks
void measure_tsubame3(study::Study& study);  // a loader with less memory than data

}  // namespace renkei::cli
