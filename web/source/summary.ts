// The verdict, the main figures, and what each change would bring.
import type { Category, Report, Run } from "./data";
import { meaning, legend } from "./colours";
import { bytes, card, count, element, percent, seconds, table } from "./words";

export function verdict(run: Run): HTMLElement {
  const words = run.verdict;
  const box = element("section", { class: `card verdict status-${run.status}`, id: "main", "aria-label": "Verdict" });
  if (run.ended) box.append(element("p", { class: "ended" }, run.ended));
  box.append(element("p", { class: "sentence", "data-verdict": words.cause }, `${words.sentence}.`));
  if (words.advice) {
    const advice = element("p", {}, element("b", {}, "Advice: "), `${words.advice}. `);
    if (words.gain_seconds > 0)
      advice.append(element("span", { class: "gain" },
        `Saves about ${seconds(words.gain_seconds)} of ${seconds(run.replay.measured_seconds)} a step`));
    box.append(advice);
  }
  return box;
}

export function tiles(run: Run): HTMLElement {
  const tile = (value: string, name: string) => element("div", { class: "tile" }, element("b", {}, value), element("span", {}, name));
  const list = [
    tile(`${count(run.samples_per_second)}`, "samples per second"),
    tile(seconds(run.summary?.step_seconds.median ?? run.step_seconds), "median step"),
    tile(percent(run.step_seconds > 0 ? run.time.compute / run.step_seconds : 0), "of a step is computing"),
    tile(`${run.ranks}`, `rank${run.ranks === 1 ? "" : "s"} on ${run.hosts.length} host${run.hosts.length === 1 ? "" : "s"}`),
    tile(seconds(run.wall_seconds), "from launch to end"),
  ];
  if (run.summary) {
    list.push(tile(run.summary.loss.last.toPrecision(4), `loss, from ${run.summary.loss.first.toPrecision(4)}`));
    if (run.summary.accuracy !== null) list.push(tile(percent(run.summary.accuracy), "accuracy, held out"));
    const peak = Math.max(0, ...run.summary.memory_bytes.map((memory) => memory.peak));
    if (peak > 0) list.push(tile(bytes(peak), "memory of the largest rank"));
  }
  return element("div", { class: "tiles" }, ...list);
}

function bar(parts: { name: string; seconds: number; colour: string; hint: string }[], scale: number): HTMLElement {
  const line = element("div", { class: "bar", role: "img",
    "aria-label": parts.map((part) => `${part.name} ${seconds(part.seconds)}`).join(", ") });
  for (const part of parts)
    if (part.seconds > 0 && scale > 0)
      line.append(element("span", { style: `width:${(100 * part.seconds) / scale}%;background:${part.colour}`,
        title: `${part.name}: ${seconds(part.seconds)} (${percent(part.seconds / scale)})${part.hint ? ` — ${part.hint}` : ""}` }));
  return line;
}

export function where(report: Report, run: Run): HTMLElement {
  const categories = report.categories;
  const rows = element("div", { class: "bars" });
  const longest = Math.max(...run.time_of_ranks.map((rank) => rank.step_seconds), 1e-12);
  const add = (name: string, times: Record<Category, number>, length: number) => {
    rows.append(element("span", {}, name),
      bar(categories.map((category) => ({ name: category, seconds: times[category], colour: `var(--${category})`, hint: meaning[category] })), longest),
      element("span", {}, seconds(length)));
  };
  if (run.ranks > 1) add("mean", run.time, run.step_seconds);
  for (const rank of run.time_of_ranks.slice(0, 32)) add(`rank ${rank.rank}`, rank.time, rank.step_seconds);
  const used = categories.filter((category) => run.time_of_ranks.some((rank) => rank.time[category] > 0.0005 * rank.step_seconds));
  const lines = used.map((category) => [category, seconds(run.time[category]), percent(run.time[category] / run.step_seconds),
    ...(run.ranks <= 8 ? run.time_of_ranks.map((rank) => seconds(rank.time[category])) : [])]);
  lines.push(["step", seconds(run.step_seconds), "100 %",
    ...(run.ranks <= 8 ? run.time_of_ranks.map((rank) => seconds(rank.step_seconds)) : [])]);
  lines.push(["hidden behind computing: communication",
    seconds(run.time_of_ranks.reduce((sum, rank) => sum + rank.hidden_communication, 0) / Math.max(1, run.ranks)), "",
    ...(run.ranks <= 8 ? run.time_of_ranks.map((rank) => seconds(rank.hidden_communication)) : [])]);
  const numbers = table(["cause", "mean", "share", ...(run.ranks <= 8 ? run.time_of_ranks.map((rank) => `rank ${rank.rank}`) : [])],
    lines, "Seconds by cause");
  return card("Where a step's time goes", "Each rank's mean step, divided by cause. The parts add up to its wall time; what nothing explains is “other”.",
    rows, legend(used), numbers);
}

export function what_if(run: Run): HTMLElement | null {
  if (run.what_if.length === 0) return null;
  const error = `replayed unchanged: ${seconds(run.replay.replayed_seconds)}, measured ${seconds(run.replay.measured_seconds)} (${run.replay.error >= 0 ? "+" : ""}${(100 * run.replay.error).toFixed(1)} %)`;
  const rows = run.what_if.map((one) => {
    const gain = 1 - one.step_seconds / run.replay.measured_seconds;
    return [element("span", { title: one.advice }, one.cause), seconds(one.step_seconds),
      element("span", gain > 0.005 ? { class: "gain" } : {}, gain > 0.0005 ? `−${percent(gain)}` : "nothing")];
  });
  return card("What if", `The recorded tasks, executed again in virtual time with one cause taken away. ${error}.`,
    table(["without the cause", "a step would take", "gain"], rows, "What if"));
}

// The longest operations, where they were recorded.
export function operations(run: Run): HTMLElement | null {
  if (run.operations.length === 0) return null;
  const most = 24, all = run.operations.reduce((sum, one) => sum + one.seconds, 0);
  const rows = run.operations.slice(0, most).map((one) =>
    [one.name, seconds(one.seconds), percent(one.seconds / all), count(one.calls)]);
  const rest = run.operations.slice(most).reduce((sum, one) => sum + one.seconds, 0);
  if (rest > 0) rows.push([`${run.operations.length - most} others`, seconds(rest), percent(rest / all), ""]);
  rows.push(["all operations", seconds(all), "100 %", ""]);
  return card("Operations", "What computing consists of: the mean of a rank's step, forward and backward.",
    table(["operation", "seconds", "share", "calls"], rows, "Operations"));
}

export function whole(run: Run): HTMLElement | null {
  if (run.parts.length === 0) return null;
  const colours = ["#7c8aa0", "#9aa9bd", "#b5a36a", "#8d7bb0", "#6aa58f", "#b08a7b"];
  const parts = run.parts.map((part, i) => ({ name: part.name, seconds: Math.max(0, part.seconds), hint: "",
    colour: part.name === "steps" ? "var(--compute)" : part.name.startsWith("between") ? "var(--other)" : colours[i % colours.length] ?? "" }));
  return card("The whole run", "From the first process to the last, on rank 0: start-up, steps, what lies between.",
    bar(parts, run.wall_seconds),
    table(["phase", "seconds", "share"], [...parts.map((part) => [
      element("span", {}, element("span", { class: "swatch", style: `background:${part.colour}` }), part.name),
      seconds(part.seconds), percent(part.seconds / run.wall_seconds)]),
      ["wall time", seconds(run.wall_seconds), "100 %"]], "The whole run"));
}

export function memory(run: Run): HTMLElement | null {
  const list = run.summary?.memory_bytes;
  if (!list || list.length === 0) return null;
  const kinds = ["parameters", "gradients", "optimizer", "activations", "other"] as const;
  const colours = ["var(--compute)", "var(--communication)", "var(--imbalance)", "var(--data)", "var(--other)"];
  const most = Math.max(...list.map((rank) => Math.max(rank.peak, kinds.reduce((sum, kind) => sum + rank[kind], 0))));
  const rows = element("div", { class: "bars" });
  for (const rank of list.slice(0, 32)) {
    const line = element("div", { class: "bar", role: "img", "aria-label": `rank ${rank.rank}: ${bytes(rank.peak)}` });
    kinds.forEach((kind, i) => line.append(element("span",
      { style: `width:${(100 * rank[kind]) / most}%;background:${colours[i]}`, title: `${kind}: ${bytes(rank[kind])}` })));
    rows.append(element("span", {}, `rank ${rank.rank}`), line, element("span", {}, bytes(rank.peak)));
  }
  const names = element("ul", { class: "legend" }, ...kinds.map((kind, i) =>
    element("li", {}, element("span", { class: "swatch", style: `background:${colours[i]}` }), kind)));
  return card("Memory", "The most that each rank used, by kind; “other” is libraries and scratch memory.", rows, names);
}

export function environment(report: Report, run: Run): HTMLElement {
  const summary = run.summary;
  const rows: string[][] = [["run", run.run_dir], ["model", run.model], ["hosts", run.hosts.join(", ")]];
  if (run.began !== null) rows.push(["began", new Date(run.began * 1000).toISOString().replace("T", " ").slice(0, 19) + " UTC"]);
  if (summary) {
    rows.push(["parameters", count(summary.parameters)], ["batch", `${count(summary.batch)}, ${summary.plan.micro_batches} micro-batches`],
      ["plan", `${summary.plan.kind}: ${summary.plan.stages} stages × ${summary.plan.replicas} replicas, ${summary.plan.schedule}`],
      ["threads per rank", `${summary.threads_per_rank}`], ["steps", `${count(summary.steps)} in ${summary.epochs} epochs`],
      ["checksum", summary.parameters_checksum]);
    if (summary.predicted) rows.push(["predicted step", seconds(summary.predicted.step_seconds)]);
  }
  const dropped = run.slices.ranks.reduce((sum, rank) => sum + rank.dropped, 0);
  if (dropped > 0) rows.push(["slices dropped", `${count(dropped)}, the oldest; sums of all steps were kept`]);
  rows.push(["renkei", report.version]);
  return card("Environment", "What ran where.", table(["", ""], rows.map((row) => row.map((cell) => cell)), "Environment"));
}
