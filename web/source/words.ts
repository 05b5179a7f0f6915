// Numbers for people, and small helpers that make elements.

export function seconds(value: number): string {
  const size = Math.abs(value);
  if (size >= 100) return `${value.toFixed(0)} s`;
  if (size >= 1) return `${value.toFixed(2)} s`;
  if (size >= 1e-3) return `${(value * 1e3).toPrecision(3)} ms`;
  if (size === 0) return "0";
  return `${(value * 1e6).toPrecision(3)} µs`;
}

export function bytes(value: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit + 1 < units.length) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? value.toFixed(0) : value.toPrecision(3)} ${units[unit]}`;
}

export function count(value: number): string {
  return value.toLocaleString("en-US", { maximumFractionDigits: value < 100 ? 2 : 0 });
}

export function percent(share: number): string {
  return `${(100 * share).toFixed(Math.abs(share) < 0.1 ? 1 : 0)} %`;
}

type Child = Node | string;

export function element(tag: string, properties: Record<string, string> = {}, ...children: Child[]): HTMLElement {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export function drawn(tag: string, properties: Record<string, string | number> = {}, ...children: Node[]): SVGElement {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(properties)) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
}

export function table(head: string[], rows: Child[][], name: string): HTMLElement {
  // What is no number is read from the left, and may be long.
  const is_words = (cell: Child) => typeof cell === "string" && cell.length > 24;
  const cells = (kind: string, row: Child[]) => row.map((cell) =>
    element(kind, kind === "th" ? { scope: "col" } : is_words(cell) ? { class: "words" } : {}, cell));
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": name },
    element("table", {},
      element("thead", {}, element("tr", {}, ...cells("th", head))),
      element("tbody", {}, ...rows.map((row) => element("tr", {}, ...cells("td", row))))));
}

// A part of the page: a heading, a sentence that says how to read it, and what is drawn.
export function card(title: string, explanation: string, ...children: Child[]): HTMLElement {
  const id = title.toLowerCase().replaceAll(/[^a-z]+/g, "-");
  return element("section", { class: "card", "aria-labelledby": id },
    element("h2", { id }, title), element("p", { class: "muted" }, explanation), ...children);
}
