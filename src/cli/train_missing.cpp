// The commands that a renkei without LibTorch lacks.
#include "base/error.h"
#include "cli/commands.h"
#include "cli/plan_capture.h"

namespace renkei::cli {
namespace {

Command missing(const std::string& name, const std::string& summary, const std::string& lacks) {
  return {.name = name,
          .summary = summary + " (left out of this build)",
          .sections = {},
          .run = [lacks](Invocation&) -> int {
            throw Error(ErrorCode::usage, "this renkei was built without LibTorch, so it " + lacks,
                        "install libtorch-dev and configure with -DRENKEI_TORCH=ON");
          },
          .takes_anything = true};
}

}  // namespace

graph::Graph captured_graph(Settings, const CaptureRequest&) {
  throw Error(ErrorCode::usage,
              "this renkei was built without LibTorch, so it can't measure networks",
              "leave --measure out, or plan a graph file: --graph FILE.json");
}

Command make_train_command() {
  return missing("train", "train a network", "can't train");
}

Command make_bench_compute_command() {
  return missing("bench compute", "the time and the rate of each layer of a network",
                 "has no networks");
}

Command make_bench_pipeline_command() {
  return missing("bench pipeline", "the schedules of a pipeline against theory", "can't train");
}

Command make_model_list_command() {
  return missing("model list", "list the built-in networks", "has no networks");
}

Command make_model_show_command() {
  return missing("model show", "show the layers of a network", "has no networks");
}

}  // namespace renkei::cli
