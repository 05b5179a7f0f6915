// Which rank was slow in which step? And who waits for whom, who sends to whom?
import type { Run } from "./data";
import { colour, text_colour } from "./colours";
import { bytes, card, element, seconds } from "./words";

function median(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? 0;
}

export function stragglers(run: Run): HTMLElement | null {
  const compute = run.steps.compute, steps = run.steps.number.length;
  if (run.ranks < 2 || steps === 0) return null;
  // Stages differ by plan: a rank is compared with its own usual time, then ranks with each other.
  const usual = compute.map((row) => median(row));
  const stages = run.summary?.plan.stages ?? 1;
  const base = stages > 1 ? usual : usual.map(() => median(usual));
  const row_height = Math.max(6, Math.min(22, 320 / run.ranks)), left = 56;
  const height = run.ranks * row_height + 18;
  const canvas = element("canvas", { style: `height:${height}px`, role: "img", "aria-label": "Computing time of each rank in each step" }) as HTMLCanvasElement;
  const tip = element("p", { class: "tip" }, "Red computed longer than usual, blue shorter. Point at a cell.");
  const draw = (): void => {
    const width = canvas.clientWidth, ratio = window.devicePixelRatio || 1;
    if (width === 0) return;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    const context = canvas.getContext("2d")!;
    context.scale(ratio, ratio);
    context.font = "11px system-ui, sans-serif";
    const cell = (width - left) / steps;
    const red = colour("wait"), blue = colour("compute");
    compute.forEach((row, rank) => {
      context.globalAlpha = 1;
      context.fillStyle = text_colour("ink");
      if (row_height >= 10 || rank % 4 === 0) context.fillText(`rank ${rank}`, 0, rank * row_height + Math.min(13, row_height));
      row.forEach((value, step) => {
        const share = (base[rank] ?? 0) > 0 ? value / base[rank]! : 1;
        context.globalAlpha = Math.min(1, Math.abs(share - 1) / 0.4) * 0.95 + 0.05;
        context.fillStyle = share > 1 ? red : blue;
        context.fillRect(left + step * cell, rank * row_height, Math.max(cell - (cell > 4 ? 0.6 : 0), 0.6), row_height - 1);
      });
    });
    context.globalAlpha = 1;
    context.fillStyle = text_colour("muted");
    context.fillText(`step ${run.steps.number[0]}`, left, height - 4);
    context.textAlign = "right";
    context.fillText(`step ${run.steps.number[steps - 1]}`, width, height - 4);
  };
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const rank = Math.floor((event.clientY - box.top) / row_height);
    const step = Math.floor(((event.clientX - box.left - left) / (box.width - left)) * steps);
    const value = compute[rank]?.[step];
    if (value === undefined) return;
    tip.textContent = `rank ${rank}, step ${run.steps.number[step]}: computed ${seconds(value)}, ${((value / (base[rank] || 1) - 1) * 100).toFixed(0)} % from usual`;
  });
  new ResizeObserver(draw).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  return card("Stragglers", `Rank × step: how long each computed, against ${stages > 1 ? "its own median" : "the median of all ranks"}.`, canvas, tip);
}

function matrix(values: number[][], show: (value: number) => string, name: string): HTMLElement {
  const most = Math.max(...values.flat(), 1e-12);
  const head = element("tr", {}, element("th", {}, ""), ...values.map((_, rank) => element("th", { scope: "col" }, `${rank}`)));
  const rows = values.map((row, rank) => element("tr", {}, element("th", { scope: "row" }, `rank ${rank}`),
    ...row.map((value) => element("td", { style: `background:color-mix(in oklab, var(--wait) ${Math.round((60 * value) / most)}%, transparent)` },
      value > 0.001 * most ? show(value) : ""))));
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": name },
    element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows)));
}

export function waits(run: Run): HTMLElement | null {
  if (run.ranks < 2 || run.ranks > 32) return null;
  const values = run.time_of_ranks.map((rank) => rank.waited_for);
  if (values.flat().every((value) => value === 0)) return null;
  return card("Who waits for whom", "Idle seconds of a step: the row waits until the column has come.", matrix(values, seconds, "Who waits for whom"));
}

export function links(run: Run): HTMLElement | null {
  if (run.ranks > 32 || run.links.flat().every((value) => value === 0)) return null;
  return card("Links", "Bytes that the row sends to the column in a step, between stages.", matrix(run.links, bytes, "Links"));
}

