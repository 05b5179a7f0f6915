// One step as it was, over the same tasks as the schedule alone would have them.
import type { Run, TaskRow } from "./data";
import { card, drawn, element, percent, seconds } from "./words";

const colours: Record<string, string> = {
  load: "--data", forward: "--compute", backward: "--imbalance", backward_input: "--imbalance", backward_weight: "--checkpoint",
  receive: "--bubble", reduce: "--communication", norm: "--communication", loss: "--communication", update: "--update",
};

export function schedule(run: Run): HTMLElement | null {
  const data = run.schedule;
  if (!data || data.measured.length === 0) return null;
  const width = 1000, left = 76, row = 17, gap = 8;
  const scale = (width - left) / Math.max(data.seconds, data.expected_seconds);
  const picture = drawn("svg", { viewBox: `0 0 ${width} ${data.measured.length * (2 * row + gap) + 4}`, role: "img",
    "aria-label": "A step, measured above expected, for each rank", preserveAspectRatio: "none" });
  const draw_row = (tasks: TaskRow[], y: number, faded: boolean) => {
    for (const [name, begin, end, micro, stage] of tasks) {
      const wide = (end - begin) * scale;
      if (wide < 0.15 || !colours[name]) continue;
      const box = drawn("rect", { x: left + begin * scale, y, width: Math.max(wide - 0.4, 0.4), height: row - 2, rx: 1.5,
        fill: `var(${colours[name]})`, opacity: name === "receive" || name === "reduce" || name === "loss" ? (faded ? 0.3 : 0.5) : faded ? 0.55 : 1 });
      box.append(drawn("title"));
      box.firstChild!.textContent = `${faded ? "expected " : ""}${name} of micro-batch ${micro}, stage ${stage}: ${seconds(end - begin)}`;
      picture.append(box);
      if (wide > 14 && (name === "forward" || name.startsWith("backward")) && run.schedule!.measured.length > 0) {
        const text = drawn("text", { x: left + (begin + end) / 2 * scale, y: y + row - 6, "text-anchor": "middle", style: "font-size:10px;fill:var(--surface)" });
        text.textContent = `${micro}`;
        picture.append(text);
      }
    }
  };
  data.measured.slice(0, 32).forEach((tasks, rank) => {
    const y = rank * (2 * row + gap) + 2;
    const name = drawn("text", { x: 0, y: y + 12 });
    name.textContent = `rank ${rank}`;
    const below = drawn("text", { x: 0, y: y + row + 12, style: "fill:var(--muted)" });
    below.textContent = "expected";
    picture.append(name, below);
    draw_row(tasks, y, false);
    draw_row(data.expected[rank] ?? [], y + row, true);
  });
  const names: [string, string][] = [["forward", "--compute"], ["backward", "--imbalance"], ["load", "--data"],
    ["waits in a reduction", "--communication"], ["waits for a message", "--bubble"], ["update", "--update"]];
  const keys = element("ul", { class: "legend" }, ...names.map(([name, variable]) =>
    element("li", {}, element("span", { class: "swatch", style: `background:var(${variable})` }), name)));
  return card("Schedule, measured over expected",
    `Step ${data.step}, a usual one: ${seconds(data.seconds)}. Without transfers, loading and slower replicas the same tasks would take ${seconds(data.expected_seconds)} (${percent(data.expected_seconds / data.seconds)}).`,
    element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Schedule" }, wide_enough(picture)), keys);
}

function wide_enough(picture: SVGElement): SVGElement {
  picture.setAttribute("style", "width:100%;min-width:620px;display:block");
  picture.setAttribute("preserveAspectRatio", "xMinYMin meet");
  return picture;
}
