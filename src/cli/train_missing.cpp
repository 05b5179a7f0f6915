// The commands that a renkei without PyTorch lacks.
#include "base/error.h"
#include "cli/commands.h"
#include "job/measured_graph.h"

namespace renkei {

graph::Graph job::measured_graph(const Settings&, const job::MeasureRequest&) {
  throw Error(ErrorCode::usage,
              "this renkei was built without PyTorch, so it can't measure networks",
              "leave --measure out, or plan a graph file: --graph FILE.json");
}

namespace cli {
namespace {

Command missing(const std::string& name, const std::string& summary, const std::string& lacks) {
  return {.name = name,
          .summary = summary + " (left out of this build)",
          .sections = {},
          .run = [lacks](Invocation&) -> int {
            throw Error(ErrorCode::usage, "this renkei was built without PyTorch, so it " + lacks,
                        "configure with -DRENKEI_TORCH=ON");
          },
          .takes_anything = true};
}

}  // namespace

Command make_train_command() {
  return missing("train", "train a network", "can't train");
}

Command make_evaluate_command() {
  return missing("evaluate", "the loss of saved weights on a data set", "can't evaluate");
}

Command make_predict_command() {
  return missing("predict", "what saved weights say about a data set", "can't predict");
}

Command make_bench_compute_command() {
  return missing("bench compute", "the time and the rate of each layer of a network",
                 "can't compute networks");
}

Command make_bench_causes_command() {
  return missing("bench causes", "causes of delay that the report has to find", "can't train");
}

Command make_bench_pipeline_command() {
  return missing("bench pipeline", "the schedules of a pipeline against theory", "can't train");
}

}  // namespace cli
}  // namespace renkei
