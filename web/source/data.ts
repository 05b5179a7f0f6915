// What src/report/page_data.cpp writes.

export type Category = "compute" | "communication" | "wait" | "imbalance" | "bubble" | "data" | "update" |
  "checkpoint" | "other";
export type Times = Record<Category, number>;

export interface RankTime {
  rank: number;
  host: string;
  step_seconds: number;
  time: Times;
  hidden_communication: number;
  waited_for: number[];
}

export interface Slices {
  rank: number;
  host: string;
  dropped: number;
  clock_error: number;
  begin: number[]; // microseconds since the run began
  length: number[];
  name: number[];
  category: number[];
  lane: number[];
  step: number[];
  index: number[];
  stage: number[];
  peer: number[];
  bytes: number[];
}

// name, begin, end, micro-batch, stage
export type TaskRow = [string, number, number, number, number];

export interface Memory {
  rank: number;
  parameters: number;
  gradients: number;
  optimizer: number;
  activations: number;
  other: number;
  peak: number;
}

export interface Summary {
  parameters: number;
  batch: number;
  steps: number;
  epochs: number;
  threads_per_rank: number;
  version: string;
  step_seconds: { median: number; p10: number; p90: number };
  loss: { first: number; last: number };
  accuracy: number | null;
  parameters_checksum: string;
  predicted: { step_seconds: number; memory_bytes: number[] } | null;
  plan: { kind: string; stages: number; replicas: number; micro_batches: number; schedule: string };
  memory_bytes: Memory[];
}

export interface PlanStage {
  ranks: number[];
  op_count?: number;
  first_op?: string;
  last_op?: string;
  recompute?: boolean;
}

export interface Run {
  run_dir: string;
  name: string;
  model: string;
  status: "finished" | "failed" | "ended";
  ended: string;
  ranks: number;
  hosts: string[];
  samples_per_second: number;
  step_seconds: number;
  time: Times;
  time_of_ranks: RankTime[];
  wall_seconds: number;
  parts: { name: string; seconds: number }[];
  operations: { name: string; seconds: number; calls: number }[];
  verdict: { cause: string; rank: number; sentence: string; evidence: string[]; advice: string; gain_seconds: number };
  replay: { measured_seconds: number; replayed_seconds: number; error: number };
  what_if: { cause: string; advice: string; step_seconds: number; replay_error: number }[];
  summary: Summary | null;
  plan: { stage_list?: PlanStage[]; stages?: unknown } | null;
  steps: { number: number[]; seconds: number[]; causes: number[][]; compute: number[][] };
  curves: {
    step: number[];
    loss: (number | null)[];
    rate: number[];
    evaluations: { step: number; loss: number; accuracy?: number }[];
  };
  slices: { names: string[]; ranks: Slices[] };
  schedule: { step: number; seconds: number; expected_seconds: number; measured: TaskRow[][]; expected: TaskRow[][] } | null;
  links: number[][];
  began: number | null;
}

export interface Report {
  version: string;
  categories: Category[];
  runs: Run[];
}
