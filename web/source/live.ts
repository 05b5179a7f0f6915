// The page of a run that goes on (renkei watch): server-sent events say how far it is, and the page follows.
import type { Report } from "./data";
import { element } from "./words";

interface Status {
  steps: number;
  finished: boolean;
  culprit: number;
  sentence: string;
  operations: string[];
}

const seconds_between_drawings = 5;

export function is_live(): boolean {
  return location.protocol.startsWith("http") && new URLSearchParams(location.search).has("token");
}

export function follow(update: (report: Report) => void): void {
  const token = encodeURIComponent(new URLSearchParams(location.search).get("token") ?? "");
  const banner = element("div", { class: "live", role: "status" }, "waiting for the run …");
  document.body.prepend(banner);
  let drawn_steps = -1, drawn_at = 0;
  const source = new EventSource(`events?token=${token}`);
  source.onmessage = async (event) => {
    const status = JSON.parse(event.data as string) as Status;
    banner.classList.toggle("hangs", status.culprit >= 0);
    banner.replaceChildren(status.sentence);
    if (status.culprit >= 0)
      banner.append(element("ul", {}, ...status.operations.map((operation) => element("li", {}, operation))));
    const now = performance.now() / 1000;
    if (status.steps !== drawn_steps && (now - drawn_at > seconds_between_drawings || status.finished)) {
      drawn_steps = status.steps;
      drawn_at = now;
      const answer = await fetch(`data?token=${token}`);
      if (answer.ok) update((await answer.json()) as Report);
    }
    if (status.finished) source.close();
  };
  source.onerror = () => banner.replaceChildren("renkei watch has ended; this is what it showed last");
}
