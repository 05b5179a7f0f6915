// All ranks side by side, on a canvas: wheel or keys zoom, dragging moves, pointing tells.
import type { Report, Run, Slices } from "./data";
import { colour, legend, text_colour } from "./colours";
import { bytes, card, element, seconds } from "./words";

const row_height = 18, rank_gap = 10, top = 22, label_width = 62;
const lane_names = ["compute", "communication", "input, output", "operations"];
const lane_labels = ["", "  comm.", "  I/O", "  ops"];

interface Row { slices: Slices; lane: number; y: number; items: number[] }

export function timeline(report: Report, run: Run): HTMLElement | null {
  const ranks = run.slices.ranks;
  if (ranks.every((rank) => rank.begin.length === 0)) return null;
  const rows: Row[] = [];
  let y = top;
  for (const slices of ranks) {
    for (const lane of [0, 3, 1, 2]) {
      const items: number[] = [];
      slices.lane.forEach((one, i) => { if (one === lane) items.push(i); });
      if (items.length === 0) continue;
      items.sort((a, b) => slices.begin[a]! - slices.begin[b]!);
      rows.push({ slices, lane, y, items });
      y += row_height;
    }
    y += rank_gap;
  }
  const height = y;
  const canvas = element("canvas", { tabindex: "0", role: "application", style: `height:${height}px`,
    "aria-label": "Timeline. Arrow keys move, plus and minus zoom, Home shows all." }) as HTMLCanvasElement;
  const tip = element("p", { class: "tip", "aria-live": "polite" }, "Point at a slice to see what it is.");
  const in_steps = ranks.flatMap((rank) => rank.begin.filter((_, i) => rank.step[i]! >= 0));
  const ends = ranks.flatMap((rank) => rank.begin.map((begin, i) => begin + rank.length[i]!));
  const last = ends.reduce((most, end) => Math.max(most, end), 0);
  const first = 0;
  let begin = first, end = last;

  const span_of_steps = (count: number): [number, number] => {
    const steps = [...new Set(ranks[0]!.step.filter((step) => step >= 0))];
    const chosen = new Set(steps.slice(Math.floor(steps.length / 2)).slice(0, count));
    let from = Infinity, to = 0;
    for (const rank of ranks)
      rank.begin.forEach((at, i) => {
        if (!chosen.has(rank.step[i]!)) return;
        from = Math.min(from, at);
        to = Math.max(to, at + rank.length[i]!);
      });
    return from < to ? [from, to] : [first, last];
  };

  const draw = (): void => {
    const width = canvas.clientWidth, ratio = window.devicePixelRatio || 1;
    if (width === 0) return;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    const context = canvas.getContext("2d")!;
    context.scale(ratio, ratio);
    context.font = "11px system-ui, sans-serif";
    const scale = (width - label_width) / (end - begin);
    const x = (time: number) => label_width + (time - begin) * scale;
    context.fillStyle = text_colour("muted");
    for (let i = 0; i <= 5; i += 1) {
      const time = begin + ((end - begin) * i) / 5;
      context.textAlign = i === 5 ? "right" : i === 0 ? "left" : "center";
      context.fillText(seconds(time / 1e6), x(time), 12);
    }
    context.textAlign = "left";
    const colours = report.categories.map((category) => colour(category));
    const surface = text_colour("surface");
    let named = -1;
    for (const row of rows) {
      context.fillStyle = text_colour("ink");
      if (row.slices.rank !== named) context.fillText(`rank ${row.slices.rank}`, 0, row.y + 12);
      else {
        context.fillStyle = text_colour("muted");
        context.fillText(lane_labels[row.lane]!, 0, row.y + 12);
      }
      named = row.slices.rank;
      context.fillStyle = text_colour("line");
      context.fillRect(label_width, row.y + row_height - 2, width - label_width, 1);
      let drawn_until = -1;
      for (const i of row.items) {
        const from = row.slices.begin[i]!, to = from + row.slices.length[i]!;
        if (to < begin || from > end) continue;
        const left = Math.max(label_width, x(from)), right = Math.min(width, x(to));
        const wide = Math.max(right - left, 0.7);
        if (left + wide < drawn_until + 0.4) continue; // what lies within one pixel is one pixel
        drawn_until = left + wide;
        context.fillStyle = row.slices.step[i]! < 0 ? text_colour("muted") : colours[row.slices.category[i]!] ?? "";
        context.fillRect(left, row.y, wide, row_height - 3);
        const name = run.slices.names[row.slices.name[i]!] ?? "";
        const label = wide > 26 ? (name.length * 6 < wide ? name : name.slice(0, Math.floor(wide / 6.4))) : "";
        if (label) {
          context.fillStyle = surface;
          context.fillText(label, left + 3, row.y + 11);
        }
      }
    }
  };
  const show = (from: number, to: number): void => {
    const least = 20;
    const length = Math.min(Math.max(to - from, least), last - first);
    begin = Math.max(first, Math.min(from, last - length));
    end = begin + length;
    requestAnimationFrame(draw);
  };
  const zoom = (factor: number, at = (begin + end) / 2): void => show(at - (at - begin) * factor, at + (end - at) * factor);
  const time_at = (event: MouseEvent): number => {
    const box = canvas.getBoundingClientRect();
    return begin + ((event.clientX - box.left - label_width) / (box.width - label_width)) * (end - begin);
  };
  const told = (event: MouseEvent): void => {
    const at = time_at(event), place = event.clientY - canvas.getBoundingClientRect().top;
    const row = rows.find((one) => place >= one.y && place < one.y + row_height);
    const near = ((end - begin) / canvas.clientWidth) * 2;
    const i = row?.items.find((item) => at >= row.slices.begin[item]! - near && at <= row.slices.begin[item]! + row.slices.length[item]! + near);
    if (!row || i === undefined) return;
    const s = row.slices;
    const words = [`rank ${s.rank}, ${lane_names[row.lane]}: ${run.slices.names[s.name[i]!]}`, seconds(s.length[i]! / 1e6), `at ${seconds(s.begin[i]! / 1e6)}`];
    if (s.step[i]! >= 0) words.push(`step ${s.step[i]}`, `${row.lane === 1 ? "bucket" : "micro-batch"} ${s.index[i]}`);
    if (s.stage[i]! >= 0) words.push(`stage ${s.stage[i]}`);
    if (s.peer[i]! >= 0) words.push(`other end: rank ${s.peer[i]}`);
    if (s.bytes[i]! > 0) words.push(bytes(s.bytes[i]!));
    tip.textContent = words.join(" · ");
  };
  let held: { x: number; begin: number; end: number } | null = null;
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, time_at(event));
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => { held = { x: event.clientX, begin, end }; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointerup", () => { held = null; });
  canvas.addEventListener("pointermove", (event) => {
    if (!held) return told(event);
    const moved = ((held.x - event.clientX) / (canvas.clientWidth - label_width)) * (held.end - held.begin);
    show(held.begin + moved, held.end + moved);
  });
  canvas.addEventListener("click", told);
  canvas.addEventListener("keydown", (event) => {
    const part = (end - begin) / 8;
    const keys: Record<string, () => void> = {
      ArrowLeft: () => show(begin - part, end - part), ArrowRight: () => show(begin + part, end + part),
      "+": () => zoom(0.7), "=": () => zoom(0.7), "-": () => zoom(1.4), Home: () => show(first, last),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]!();
  });
  const button = (name: string, action: () => void) => {
    const made = element("button", { type: "button" }, name);
    made.addEventListener("click", action);
    return made;
  };
  const tools = element("div", { class: "tools" },
    button("one step", () => show(...span_of_steps(1))), button("three steps", () => show(...span_of_steps(3))),
    button("all", () => show(first, last)), button("zoom in", () => zoom(0.5)), button("zoom out", () => zoom(2)));
  if (in_steps.length > 0) [begin, end] = span_of_steps(3);
  new ResizeObserver(draw).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  return card("Timeline", "What every rank did when. Wheel or + and − zoom, drag or arrow keys move; timeline.json in the run directory opens in Perfetto.",
    tools, canvas, tip, legend(report.categories.filter((category) => !["wait", "imbalance", "other"].includes(category))));
}
