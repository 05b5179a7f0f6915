// renkei model import FILE -o FILE.safetensors: weights of other programs become a file for
// model.weights, and are compared with the network that they are for.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/version.h"
#include "capture/open_network.h"
#include "capture/weights_file.h"
#include "cli/commands.h"

namespace renkei::cli {
namespace {

struct ImportFlags {
  std::string file, output, model;
};

int import_model(Invocation& invocation, const ImportFlags& flags) {
  if (!flags.output.ends_with(".safetensors"))
    throw Error(ErrorCode::usage, fmt::format("{} is no .safetensors file", flags.output),
                "choose a name that ends with .safetensors");
  capture::NamedTensors tensors = capture::read_weights_file(flags.file);
  if (!flags.model.empty()) {
    invocation.settings.set("model.name", flags.model, "--model");
    tensors = capture::fit_weights(capture::open_network(invocation.settings).network.training,
                                   std::move(tensors), flags.file);
  }
  capture::write_weights_file(flags.output, tensors);
  int64_t bytes = 0;
  for (const auto& [name, tensor] : tensors) bytes += tensor.bytes();
  const nlohmann::json result{{"command", invocation.command},
                              {"version", kVersion},
                              {"from", flags.file},
                              {"weights", flags.output},
                              {"tensors", tensors.size()},
                              {"bytes", bytes},
                              {"fits", flags.model}};
  if (invocation.json)
    fmt::print("{}\n", result.dump(2));
  else
    fmt::print("{} tensors written: {}\nuse them with --set model.weights={}\n", tensors.size(),
               flags.output, flags.output);
  return 0;
}

}  // namespace

Command make_model_import_command() {
  const auto flags = std::make_shared<ImportFlags>();
  return {.name = "model import",
          .summary = "turn weights of other programs into a file to begin with",
          .sections = {},
          .add_flags =
              [flags](Arguments& arguments) {
                arguments
                    .option("file", flags->file,
                            "a state dict (.pt, .pth, .bin), a .pt2 or a .safetensors file; "
                            "nothing in it is executed")
                    .value_name("FILE")
                    .required();
                arguments.option("-o,--output", flags->output, "write here: FILE.safetensors")
                    .value_name("FILE")
                    .required();
                arguments
                    .option("--model", flags->model,
                            "compare names and shapes with this network, and write tied weights "
                            "under all their names")
                    .value_name("NAME|FILE.pt2");
              },
          .run = [flags](Invocation& invocation) { return import_model(invocation, *flags); }};
}

}  // namespace renkei::cli
