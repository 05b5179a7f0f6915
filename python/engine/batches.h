// The samples of a data set, in the loader's order, as tensors that lie where they were loaded to;
// who keeps many of them gets copies, so that there is memory to load to.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/loader/loader.h"
#include "data/stored_data.h"
#include "world.h"

namespace renkei::python {

class Batches {
 public:
  struct Options {
    std::string path;
    bool held_out = false;
    int64_t per_rank = 1;  // samples of a batch
    bool shuffle = true;
    uint64_t seed = 1;
    std::optional<std::pair<int, int>> image_size = {};  // height and width
    bool augment = false;                                // random crops, mirrored
    std::map<std::string, std::string> settings = {};    // those that begin with data.
  };
  Batches(World& world, const Options& options);

  using Named = std::vector<std::pair<std::string, torch::Tensor>>;
  // Of this rank. The memory is used again when the tensors are gone.
  Named load(int64_t epoch, int64_t step);
  int64_t count() const { return open_->data->count(); }  // samples of all ranks in an epoch
  int64_t steps() const { return sampler_.steps_per_epoch(); }
  int64_t classes() const;  // of labels; 0: there are none
  void close();

 private:
  // As long as there are tensors in its memory.
  struct Open {
    std::unique_ptr<data::StoredData> data;
    std::unique_ptr<data::Loader> loader = nullptr;
    std::atomic<int64_t> lent = 0;  // batches
  };
  std::shared_ptr<Open> open_;
  data::Sampler sampler_;
};

}  // namespace renkei::python
