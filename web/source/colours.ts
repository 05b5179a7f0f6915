// One colour for each cause, the same in every drawing; the style sheet has them for light and dark.
import type { Category } from "./data";
import { element } from "./words";

export const meaning: Record<Category, string> = {
  compute: "forward and backward",
  communication: "transfers and sums that computing does not hide",
  wait: "for a slower or later rank",
  imbalance: "for a stage that has more to do",
  bubble: "a pipeline fills and empties",
  data: "loading that computing does not hide",
  update: "of the parameters",
  checkpoint: "saving",
  other: "measured, and explained by nothing",
};

export function colour(category: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${category}`).trim();
}

export function text_colour(name: "ink" | "muted" | "line" | "surface"): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export function legend(categories: Category[]): HTMLElement {
  return element("ul", { class: "legend" }, ...categories.map((category) =>
    element("li", { title: meaning[category] },
      element("span", { class: "swatch", style: `background:var(--${category})` }), category)));
}
