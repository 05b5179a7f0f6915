#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include "base/error.h"
#include "base/file.h"
#include "bindings.h"
#include "checkpoint/shard.h"
#include "checkpoint/store.h"
#include "run/executor.h"
#include "run/memory.h"
#include "world.h"

namespace py = pybind11;

namespace renkei::python {
namespace {

using NamedTensor = std::pair<std::string, torch::Tensor>;

program::DType dtype_of(const torch::Tensor& tensor, const std::string& name) {
  for (const program::DType dtype : program::kAllDTypes)
    if (run::scalar_type(dtype) == tensor.scalar_type()) return dtype;
  throw Error(ErrorCode::usage, fmt::format("'{}' is {}, which a checkpoint can't hold", name,
                                            torch::toString(tensor.scalar_type())));
}

std::string write_shard(const std::string& file, const std::vector<NamedTensor>& tensors) {
  const run::HostMemory host;  // a device has no room for copies
  std::vector<torch::Tensor> memory;
  std::vector<checkpoint::Run> runs;
  for (const auto& [name, tensor] : tensors) {
    const torch::Tensor& kept = memory.emplace_back(tensor.detach().contiguous());
    runs.push_back({.name = name,
                    .dtype = dtype_of(kept, name),
                    .sizes = kept.sizes().vec(),
                    .bytes = {static_cast<const std::byte*>(kept.data_ptr()), kept.nbytes()}});
  }
  return to_text(checkpoint::write_shard(file, runs));
}

void write_manifest(const std::string& directory, const std::vector<std::string>& shards,
                    int64_t step, const std::map<std::string, std::string>& notes, int keep) {
  checkpoint::Manifest manifest{
      .progress = {.step = step}, .settings = {}, .plan = "{}", .notes = notes};
  for (const std::string& text : shards)
    checkpoint::add_shard(manifest, checkpoint::shard_from_text(text));
  checkpoint::sort_pieces(manifest);
  const std::string text = to_text(manifest);
  checkpoint::parse_manifest(text, "the manifest");  // nothing that could not be read again
  const std::filesystem::path path = directory;
  write_file_atomically(path / "manifest.json", text);
  if (keep > 0) checkpoint::prune(path.parent_path(), step, {.last = keep});
}

int64_t newest_step(const std::string& folder) {
  const auto found = checkpoint::find_checkpoints(folder);
  return found.empty() ? -1 : found.front().step;
}

// The newest checkpoint of a folder that is whole, verified by all ranks together.
class Checkpoint {
 public:
  Checkpoint(World& world, const std::string& folder) {
    std::string why;
    auto found =
        checkpoint::open_newest(folder, world.transport(), world.call("loading of a checkpoint"),
                                [&](const std::string& text) { why += "; " + text; });
    if (!found)
      throw Error(ErrorCode::data, fmt::format("{} has no checkpoint that is whole{}", folder, why),
                  "name the folder that renkei.save() was given");
    reader_ = std::make_unique<checkpoint::Reader>(std::move(*found));
    skipped_ = why.empty() ? why : why.substr(2);
  }

  int64_t step() const { return reader_->manifest().progress.step; }
  const std::string& skipped() const { return skipped_; }  // why a newer one was not taken
  const std::map<std::string, std::string>& notes() const { return reader_->manifest().notes; }
  std::vector<std::string> names() const {
    std::vector<std::string> list;
    for (const auto& [name, tensor] : reader_->manifest().tensors) list.push_back(name);
    return list;
  }
  torch::Tensor get(const std::string& name) {
    const auto& tensors = reader_->manifest().tensors;
    const auto found = tensors.find(name);
    if (found == tensors.end())
      throw Error(ErrorCode::bug, fmt::format("the checkpoint has no tensor {}", name));
    torch::Tensor made = torch::empty(found->second.sizes,
                                      torch::TensorOptions(run::scalar_type(found->second.dtype)));
    read(name, made);
    return made;
  }
  void read(const std::string& name, const torch::Tensor& into) {
    torch::Tensor here = into.detach();
    const torch::Tensor whole = here.is_contiguous() ? here : torch::empty_like(here).contiguous();
    reader_->read(name, {dtype_of(here, name), whole.sizes()}, 0,
                  {static_cast<std::byte*>(whole.data_ptr()), whole.nbytes()});
    if (!whole.is_same(here)) here.copy_(whole);
  }

 private:
  std::unique_ptr<checkpoint::Reader> reader_;
  std::string skipped_;
};

}  // namespace

void bind_checkpoint(py::module_& module) {
  using Unlocked = py::call_guard<py::gil_scoped_release>;
  module.def("write_shard", &write_shard, py::arg("file"), py::arg("tensors"), Unlocked());
  module.def("write_manifest", &write_manifest, py::arg("directory"), py::arg("shards"),
             py::arg("step"), py::arg("notes"), py::arg("keep"), Unlocked());
  module.def("newest_step", &newest_step, py::arg("folder"), Unlocked());
  module.def(
      "checkpoint_directory",
      [](const std::string& folder, int64_t step) {
        return checkpoint::directory_of(folder, step).string();
      },
      py::arg("folder"), py::arg("step"));
  module.def("shard_name", &checkpoint::shard_name, py::arg("rank"));
  py::class_<Checkpoint>(module, "Checkpoint")
      .def(py::init<World&, const std::string&>(), py::arg("world"), py::arg("folder"),
           py::keep_alive<1, 2>(), Unlocked())
      .def("get", &Checkpoint::get, py::arg("name"), Unlocked())
      .def("read", &Checkpoint::read, py::arg("name"), py::arg("into"), Unlocked())
      .def_property_readonly("step", &Checkpoint::step)
      .def_property_readonly("skipped", &Checkpoint::skipped)
      .def_property_readonly("notes", &Checkpoint::notes)
      .def_property_readonly("names", &Checkpoint::names);
}

}  // namespace renkei::python
