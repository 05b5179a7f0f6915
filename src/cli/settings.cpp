#include "cli/settings.h"

#include "cli/ranks.h"
#include "cli/run_directory.h"
#include "cli/training_data.h"
#include "comm/communicator.h"
#ifdef RENKEI_HAVE_TORCH
#include "model/compute_options.h"
#include "model/network.h"
#include "optim/settings.h"
#include "run/trainer.h"
#endif

namespace renkei::cli {

Settings declare_all_settings() {
  Settings settings;
  declare_run_settings(settings);
  declare_rank_settings(settings);
#ifdef RENKEI_HAVE_TORCH
  model::declare_settings(settings);
#endif
  declare_data_settings(settings);
#ifdef RENKEI_HAVE_TORCH
  run::declare_settings(settings);
  optim::declare_settings(settings);
  model::declare_compute_settings(settings);
#endif
  comm::declare_settings(settings);
  return settings;
}

}  // namespace renkei::cli
