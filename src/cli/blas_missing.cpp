// What needs a BLAS, in the programs that must not load one, and in builds that have none.
#include "base/error.h"
#include "dense/linpack.h"
#include "dense/product.h"

namespace renkei::dense {
namespace {

Error no_blas(const char* what) {
  return Error(ErrorCode::usage,
               fmt::format("this renkei was built without ScaLAPACK and OpenBLAS, so it {}", what),
               "install libscalapack-openmpi-dev (or -mpich-dev) and libopenblas-dev, and "
               "configure with -DRENKEI_BLAS=ON");
}

}  // namespace

LinpackResult solve_linpack(comm::Transport&, const LinpackOptions&) {
  throw no_blas("can't solve systems; --engine hpl works");
}

double product_flops_per_second(Precision, int, int, int) {
  throw no_blas("can't multiply matrices");
}

double sustained_flops_per_second(Precision, int, int, double) {
  throw no_blas("can't multiply matrices");
}

bool have_products() {
  return false;
}

}  // namespace renkei::dense
