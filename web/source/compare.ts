// Several runs: how speed grows with ranks, and by which cause two runs differ.
import type { Category, Report, Run } from "./data";
import { legend, meaning } from "./colours";
import { card, count, drawn, element, percent, seconds, table } from "./words";

// The papers' figure: samples per second over ranks, with the line that would be ideal.
function scaling(runs: Run[]): SVGElement {
  const width = 520, height = 300, left = 64, bottom = 34;
  const sorted = [...runs].sort((a, b) => a.ranks - b.ranks);
  const smallest = sorted[0]!, most_ranks = Math.max(...sorted.map((run) => run.ranks));
  const per_rank = smallest.samples_per_second / smallest.ranks;
  const top = 1.08 * Math.max(per_rank * most_ranks, ...sorted.map((run) => run.samples_per_second));
  const x = (ranks: number) => left + ((width - left - 16) * ranks) / (most_ranks * 1.04);
  const y = (rate: number) => height - bottom - ((height - bottom - 10) * rate) / top;
  const picture = drawn("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Samples per second over ranks", style: "width:100%;display:block" });
  const text = (at_x: number, at_y: number, words: string, anchor = "middle") => {
    const made = drawn("text", { x: at_x, y: at_y, "text-anchor": anchor, style: "fill:var(--muted);font-size:12px" });
    made.textContent = words;
    picture.append(made);
  };
  for (let i = 0; i <= 4; i += 1) {
    picture.append(drawn("line", { x1: left, x2: width - 10, y1: y((top * i) / 4), y2: y((top * i) / 4), stroke: "var(--line)" }));
    text(left - 6, y((top * i) / 4) + 4, count(Math.round((top * i) / 4)), "end");
  }
  for (const ranks of new Set(sorted.map((run) => run.ranks))) text(x(ranks), height - bottom + 16, `${ranks}`);
  text((left + width) / 2, height - 2, "ranks");
  picture.append(drawn("line", { x1: x(0), y1: y(0), x2: x(most_ranks), y2: y(per_rank * most_ranks), stroke: "var(--muted)", "stroke-dasharray": "5 4" }));
  text(x(most_ranks) - 4, y(per_rank * most_ranks) + 18, "ideal", "end");
  picture.append(drawn("polyline", { points: sorted.map((run) => `${x(run.ranks)},${y(run.samples_per_second)}`).join(" "), fill: "none", stroke: "var(--compute)", "stroke-width": 2.2 }));
  for (const run of sorted) {
    const dot = drawn("circle", { cx: x(run.ranks), cy: y(run.samples_per_second), r: 4.5, fill: "var(--compute)" });
    dot.append(drawn("title"));
    dot.firstChild!.textContent = `${run.name}: ${run.ranks} ranks, ${count(run.samples_per_second)} samples/s`;
    picture.append(dot);
  }
  return picture;
}

export function comparison(report: Report, choose: (index: number) => void): HTMLElement | null {
  if (report.runs.length < 2) return null;
  const runs = [...report.runs].sort((a, b) => a.ranks - b.ranks);
  const first = runs[0]!;
  const per_rank = first.samples_per_second / first.ranks;
  const longest = Math.max(...runs.map((run) => run.step_seconds), 1e-12);
  const bars = element("div", { class: "bars" });
  for (const run of runs) {
    const line = element("div", { class: "bar", role: "img", "aria-label": `${run.name}: ${seconds(run.step_seconds)}` });
    for (const category of report.categories)
      line.append(element("span", { style: `width:${(100 * run.time[category]) / longest}%;background:var(--${category})`,
        title: `${category}: ${seconds(run.time[category])} — ${meaning[category]}` }));
    bars.append(element("span", {}, `${run.ranks} rank${run.ranks === 1 ? "" : "s"}`), line, element("span", {}, seconds(run.step_seconds)));
  }
  const used = report.categories.filter((category) => runs.some((run) => run.time[category] > 0.002 * longest));
  const rows = runs.map((run) => {
    const open = element("button", { type: "button", "data-run": run.name }, run.name);
    open.addEventListener("click", () => choose(report.runs.indexOf(run)));
    return [open, `${run.ranks}`, `${run.hosts.length}`, count(run.samples_per_second), seconds(run.step_seconds),
      percent(run.samples_per_second / (run.ranks * per_rank)), percent(run.time.communication / run.step_seconds),
      percent((run.time.wait + run.time.imbalance + run.time.bubble) / run.step_seconds), run.verdict.sentence];
  });
  const last = runs[runs.length - 1]!;
  const differences = (report.categories as Category[]).map((category) => [category, seconds(runs[0]!.time[category]), seconds(last.time[category]),
    seconds(last.time[category] - runs[0]!.time[category])]).concat([["step", seconds(runs[0]!.step_seconds), seconds(last.step_seconds), seconds(last.step_seconds - runs[0]!.step_seconds)]]);
  return element("div", { class: "grid" },
    card("Scaling", "Samples per second over ranks; the dashed line is the smallest run, multiplied.", scaling(runs) as unknown as Node),
    card("A step of each run, by cause", "To one scale, so that what grows with the ranks can be seen.", bars, legend(used)),
    element("div", { class: "wide" }, card("Runs", "Efficiency is speed per rank against the smallest run. A name opens that run below.",
      table(["run", "ranks", "hosts", "samples/s", "step", "efficiency", "communication", "waiting", "why"], rows, "Runs"))),
    element("div", { class: "wide" }, card("Difference by cause", `From ${runs[0]!.name} to ${last.name}, of a step.`,
      table(["cause", runs[0]!.name, last.name, "difference"], differences, "Difference by cause"))));
}
