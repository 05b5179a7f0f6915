// The list of commands; each is made in the file of its name.
#pragma once

#include "cli/command.h"

namespace renkei::cli {

Command make_train_command();
Command make_evaluate_command();
Command make_predict_command();
Command make_plan_command();
Command make_report_command();
Command make_watch_command();
Command make_run_command();
Command make_simulate_command();
Command make_study_flow_command();
Command make_study_mn1_command();
Command make_study_tsubame3_command();
Command make_model_list_command();
Command make_model_export_command();
Command make_model_import_command();
Command make_model_show_command();
Command make_bench_collectives_command();
Command make_bench_compute_command();
Command make_bench_data_command();
Command make_bench_causes_command();
Command make_bench_pipeline_command();
Command make_bench_scaling_command();
Command make_data_synth_command();
Command make_data_pack_command();
Command make_data_stage_command();
Command make_data_info_command();
Command make_data_verify_command();
Command make_check_command();
Command make_linpack_command();
Command make_tune_command();
Command make_submit_command();
Command make_jobs_command();

}  // namespace renkei::cli
