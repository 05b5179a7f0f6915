// Curves over the steps, by uPlot.
import uPlot from "uplot";
import type { Report, Run } from "./data";
import { colour, text_colour } from "./colours";
import { card, count, element, seconds } from "./words";

const charts: { plot: uPlot; box: HTMLElement }[] = [];
let observer: ResizeObserver | null = null;

// Redrawn for another run, charts must be taken down.
export function forget_charts(): void {
  for (const { plot } of charts) plot.destroy();
  charts.length = 0;
  observer?.disconnect();
  observer = new ResizeObserver(() => {
    for (const { plot, box } of charts)
      if (box.clientWidth > 0 && box.clientWidth !== plot.width) plot.setSize({ width: box.clientWidth, height: plot.height });
  });
}

function axes(value: (number: number) => string): uPlot.Axis[] {
  const shared = { stroke: text_colour("muted"), grid: { stroke: text_colour("line"), width: 1 }, ticks: { stroke: text_colour("line") } };
  return [{ ...shared, values: (_, list) => list.map((step) => (Number.isInteger(step) ? count(step) : "")) },
    { ...shared, size: 72, values: (_, list) => list.map(value) }];
}

function chart(box: HTMLElement, options: Partial<uPlot.Options>, data: uPlot.AlignedData): void {
  requestAnimationFrame(() => {
    const plot = new uPlot({ width: Math.max(240, box.clientWidth), height: 220, scales: { x: { time: false } },
      cursor: { drag: { x: true, y: false } }, ...options } as uPlot.Options, data, box);
    charts.push({ plot, box });
    observer?.observe(box);
  });
}

function line(run: Run, label: string, values: (number | null)[], stroke: string, value: (number: number) => string): HTMLElement {
  const box = element("div", { class: "chart", role: "img", "aria-label": `${label} over the steps` });
  chart(box, { axes: axes(value), series: [{ label: "step" },
    { label, stroke, width: 1.6, points: { show: values.length < 40 }, value: (_, number) => (number === null ? "" : value(number)) }] },
  [run.curves.step, values]);
  return box;
}

export function curves(run: Run): HTMLElement[] {
  if (run.curves.step.length === 0) return [];
  const loss = card("Loss", "Of every step; drag to zoom, double click to see all.",
    line(run, "loss", run.curves.loss, colour("compute"), (value) => value.toPrecision(4)));
  const rate = card("Throughput", "Samples per second, of every step.",
    line(run, "samples/s", run.curves.rate, colour("data"), count));
  const cards = [loss, rate];
  const accurate = run.curves.evaluations.filter((one) => one.accuracy !== undefined);
  if (accurate.length > 1) {
    const box = element("div", { class: "chart", role: "img", "aria-label": "accuracy after each epoch" });
    chart(box, { axes: axes((value) => `${(100 * value).toFixed(0)} %`), series: [{ label: "step" },
      { label: "accuracy", stroke: colour("update"), width: 1.6, value: (_, value) => (value === null ? "" : `${(100 * value).toFixed(1)} %`) }] },
    [accurate.map((one) => one.step), accurate.map((one) => one.accuracy ?? null)]);
    cards.push(card("Accuracy", "Of the held-out samples, after each epoch.", box));
  }
  return cards;
}

// Causes on top of each other: the upper edge is the step.
export function stacked(report: Report, run: Run): HTMLElement | null {
  const steps = run.steps;
  if (steps.number.length < 2) return null;
  const used = report.categories.map((category, c) => ({ category, values: steps.causes[c] ?? [] }))
    .filter((one) => one.values.some((value) => value > 0));
  const sums: number[][] = [];
  let below = steps.number.map(() => 0);
  for (const one of used) {
    below = below.map((sum, i) => sum + Math.max(0, one.values[i] ?? 0));
    sums.push(below);
  }
  const box = element("div", { class: "chart", role: "img", "aria-label": "time of each step by cause" });
  // The highest sum is drawn first, so that each lower one covers it.
  const order = used.map((_, i) => used.length - 1 - i);
  const ordered = [...(sums[sums.length - 1] ?? [])].sort((a, b) => a - b);
  const most = ordered[Math.floor(0.98 * (ordered.length - 1))] ?? 1;
  chart(box, { height: 260, axes: axes(seconds), scales: { x: { time: false }, y: { range: [0, 1.15 * most] } },
    legend: { show: true },
    series: [{ label: "step" }, ...order.map((i): uPlot.Series => ({ label: used[i]!.category, fill: colour(used[i]!.category),
      stroke: colour(used[i]!.category), width: 0, points: { show: false },
      value: (_, __, ___, at) => (at === null ? "" : seconds(used[i]!.values[at] ?? 0)) }))] },
  [steps.number, ...order.map((i) => sums[i]!)] as uPlot.AlignedData);
  return card("Every step by cause", "Mean of all ranks, cause upon cause; the upper edge is the step. Outliers above the 98th percentile are cut off.",
    box);
}
