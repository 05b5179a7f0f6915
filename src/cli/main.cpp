#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/front.h"
#include "cli/ranks.h"
#include "cli/settings.h"

int main(int argc, char** argv) {
  using namespace renkei;
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is a failed write, not a silent death
  const std::vector<std::string> arguments(argv, argv + argc);
  bool json = false;
  for (const std::string& word : arguments) json |= word == "--json";
  try {
#ifdef RENKEI_HAVE_BLAS
    if (cli::needs_blas(arguments)) cli::become_program("renkei-blas", argv);
#endif
#ifdef RENKEI_HAVE_TORCH
    if (cli::needs_torch(arguments)) cli::become_program("renkei-torch", argv);
#endif
    const int code = cli::run_command_line(
        arguments, cli::declare_all_settings(),
        {
            cli::make_train_command(),         cli::make_evaluate_command(),
            cli::make_predict_command(),       cli::make_model_import_command(),
            cli::make_plan_command(),          cli::make_report_command(),
            cli::make_watch_command(),         cli::make_run_command(),
            cli::make_linpack_command(),       cli::make_tune_command(),
            cli::make_submit_command(),        cli::make_jobs_command(),
            cli::make_model_list_command(),    cli::make_model_show_command(),
            cli::make_model_export_command(),  cli::make_bench_collectives_command(),
            cli::make_bench_compute_command(), cli::make_bench_data_command(),
            cli::make_bench_causes_command(),  cli::make_bench_pipeline_command(),
            cli::make_bench_scaling_command(), cli::make_data_synth_command(),
            cli::make_data_pack_command(),     cli::make_data_info_command(),
            cli::make_data_verify_command(),   cli::make_data_stage_command(),
            cli::make_simulate_command(),      cli::make_study_flow_command(),
            cli::make_study_mn1_command(),     cli::make_study_tsubame3_command(),
            cli::make_check_command(),
        });
    // What was printed may still be on its way, and the disk full.
    if (std::fflush(stdout) != 0 && code == 0)
      throw Error(ErrorCode::data,
                  fmt::format("could not write to stdout: {}", std::strerror(errno)),
                  "the output is not complete: choose another place for it");
    return code;
  } catch (const std::exception& exception) {
    const Error error = cli::as_error(exception);
    if (cli::is_first_rank())
      cli::tell_user(error, argc > 1 ? argv[1] : "", json && !cli::has_printed_result(exception));
    return error.exit_code();
  }
}
