#include "cli/settings.h"

#include "check/acceptance.h"
#include "cli/ranks.h"
#include "comm/communicator.h"
#include "dense/linpack.h"
#include "job/faults.h"
#include "job/run_directory.h"
#include "job/run_timeline.h"
#include "job/training_data.h"
#include "networks/settings.h"
#include "optim/settings.h"
#include "plan/search.h"
#include "rewrite/rewrite.h"
#include "run/settings.h"

namespace renkei::cli {

Settings declare_all_settings() {
  Settings settings;
  job::declare_run_settings(settings);
  declare_rank_settings(settings);
  networks::declare_settings(settings);
  job::declare_data_settings(settings);
  run::declare_settings(settings);
  job::declare_timeline_settings(settings);
  optim::declare_settings(settings);
  rewrite::declare_rewrite_settings(settings);
  run::declare_compute_settings(settings);
  comm::declare_settings(settings);
  plan::declare_settings(settings);
  check::declare_settings(settings);
  dense::declare_linpack_settings(settings);
  job::declare_fault_settings(settings);
  return settings;
}

}  // namespace renkei::cli
