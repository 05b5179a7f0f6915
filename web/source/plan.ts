// Who computes what, as a drawing: stages in order, laid out by dagre.
import dagre from "@dagrejs/dagre";
import type { PlanStage, Run } from "./data";
import { card, drawn, element, seconds } from "./words";

export function plan(run: Run): HTMLElement | null {
  const summary = run.summary?.plan;
  const stages: PlanStage[] = run.plan?.stage_list ?? (Array.isArray(run.plan?.stages) ? (run.plan!.stages as PlanStage[]) : []);
  const list: PlanStage[] = stages.length > 0 ? stages : [{ ranks: run.time_of_ranks.map((rank) => rank.rank) }];
  if (list[0]!.ranks === undefined || list[0]!.ranks.length === 0) return null;
  const graph = new dagre.graphlib.Graph().setGraph({ rankdir: "LR", nodesep: 12, ranksep: 46, marginx: 4, marginy: 4 }).setDefaultEdgeLabel(() => ({}));
  const nodes: { id: string; title: string; lines: string[] }[] = [];
  list.forEach((stage, s) => stage.ranks.slice(0, 16).forEach((rank) => {
    const time = run.time_of_ranks.find((one) => one.rank === rank);
    const lines = [time ? `computes ${seconds(time.time.compute)}` : "", stage.op_count ? `${stage.op_count} ops` : "the whole network"];
    nodes.push({ id: `${s}-${rank}`, title: list.length > 1 ? `stage ${s} · rank ${rank}` : `rank ${rank}`, lines: lines.filter((line) => line) });
    graph.setNode(`${s}-${rank}`, { width: 150, height: 58 });
    if (s > 0) {
      const before = list[s - 1]!.ranks;
      const mine = stage.ranks.indexOf(rank);
      before.forEach((other, i) => {
        if (i * stage.ranks.length < (mine + 1) * before.length && mine * before.length < (i + 1) * stage.ranks.length)
          graph.setEdge(`${s - 1}-${other}`, `${s}-${rank}`);
      });
    }
  }));
  dagre.layout(graph);
  const size = graph.graph();
  const width = size.width ?? 300, height = size.height ?? 80;
  const picture = drawn("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "The plan",
    style: `display:block;max-width:100%;width:${width}px;min-width:${Math.min(width, 560)}px;margin:0 auto` });
  picture.append(drawn("defs", {}, drawn("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
    drawn("path", { d: "M0 0 8 4 0 8z", fill: "var(--muted)" }))));
  for (const edge of graph.edges()) {
    const points = graph.edge(edge).points as { x: number; y: number }[];
    picture.append(drawn("path", { d: `M${points.map((point) => `${point.x} ${point.y}`).join("L")}`, fill: "none", stroke: "var(--muted)", "stroke-width": 1.3, "marker-end": "url(#arrow)" }));
  }
  const busiest = Math.max(...run.time_of_ranks.map((rank) => rank.time.compute), 1e-12);
  for (const node of nodes) {
    const place = graph.node(node.id) as { x: number; y: number };
    const x = place.x - 75, y = place.y - 29;
    const rank = Number(node.id.split("-")[1]);
    const compute = run.time_of_ranks.find((one) => one.rank === rank)?.time.compute ?? 0;
    picture.append(drawn("rect", { x, y, width: 150, height: 58, rx: 7, fill: "var(--page)", stroke: "var(--line)" }),
      drawn("rect", { x: x + 8, y: y + 49, width: 134 * (compute / busiest), height: 4, rx: 2, fill: "var(--compute)" }));
    [node.title, ...node.lines].forEach((line, i) => {
      const text = drawn("text", { x: x + 8, y: y + 16 + 14 * i, style: i === 0 ? "font-weight:600" : "fill:var(--muted);font-size:11px" });
      text.textContent = line;
      picture.append(text);
    });
  }
  const words = summary ? `${summary.kind}: ${summary.stages} stage${summary.stages === 1 ? "" : "s"} × ${summary.replicas} replica${summary.replicas === 1 ? "" : "s"}, ${summary.micro_batches} micro-batch${summary.micro_batches === 1 ? "" : "es"}, schedule ${summary.schedule}. ` : "";
  return card("Plan", `${words}The bar in a box is the rank's computing time.`,
    element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Plan" }, picture as unknown as Node));
}
