// The train command of a renkei that was built without LibTorch.
#include "base/error.h"
#include "cli/commands.h"

namespace renkei::cli {

Command make_train_command() {
  return {.name = "train",
          .summary = "train a network (left out of this build)",
          .sections = {},
          .run = [](Invocation&) -> int {
            throw Error(ErrorCode::usage,
                        "this renkei was built without LibTorch, so it can't train",
                        "install libtorch-dev and configure with -DRENKEI_TORCH=ON");
          },
          .takes_anything = true};
}

}  // namespace renkei::cli
