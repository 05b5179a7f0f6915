// Puts the page together, for one run or several.
import type { Report, Run } from "./data";
import { curves, forget_charts, stacked } from "./charts";
import { comparison } from "./compare";
import { follow, is_live } from "./live";
import { links, stragglers, waits } from "./heat";
import { plan } from "./plan";
import { schedule } from "./schedule";
import { environment, memory, operations, tiles, verdict, what_if, where, whole } from "./summary";
import { timeline } from "./timeline";
import { element } from "./words";

const app = document.getElementById("app")!;
let report = JSON.parse(document.getElementById("data")!.textContent ?? "") as Report;

let shown = 0;

function wide(section: HTMLElement | null): HTMLElement | null {
  section?.classList.add("wide");
  return section;
}

function present(list: (HTMLElement | null)[]): HTMLElement[] {
  return list.filter((section): section is HTMLElement => section !== null);
}

function sections(run: Run): HTMLElement[] {
  return [verdict(run), tiles(run), element("div", { class: "grid" }, ...present([
    wide(where(report, run)), what_if(run), whole(run), operations(run), wide(timeline(report, run)), wide(stacked(report, run)),
    wide(schedule(run)), ...curves(run), wide(stragglers(run)), waits(run), links(run), wide(plan(run)), memory(run),
    environment(report, run)]))];
}

function show(index: number): void {
  const run = report.runs[index];
  if (!run) return;
  shown = index;
  forget_charts();
  document.title = `${run.name} — Renkei`;
  const several = report.runs.length > 1;
  const title = several ? `${report.runs.length} runs compared` : `${run.model} on ${run.ranks} rank${run.ranks === 1 ? "" : "s"}`;
  app.replaceChildren(
    element("header", {}, element("h1", {}, title), element("span", { class: "muted" }, several ? "Renkei report" : `Renkei report of ${run.name}`)),
    ...present([comparison(report, (chosen) => {
      show(chosen);
      document.getElementById("chosen")?.scrollIntoView();
    })]),
    ...(several ? [element("header", { id: "chosen", style: "margin-top:28px" }, element("h1", {}, `${run.name}: ${run.model} on ${run.ranks} ranks`))] : []),
    ...sections(run),
    element("footer", {}, `${run.run_dir} · renkei ${report.version} · the same tables: renkei report --format md, json or csv`));
}

show(shown);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => show(shown));
if (is_live())
  follow((newer) => {
    const place = scrollY;
    report = newer;
    show(shown);
    scrollTo(0, place);
  });
