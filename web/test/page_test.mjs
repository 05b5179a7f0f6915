// Opens real reports in Debian's Chromium and compares what the page says with what the tables say.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

const { chromium } = createRequire(join(process.env.RENKEI_NPM_DIRECTORY, "x.js"))("playwright-core");
const directory = mkdtempSync(join(tmpdir(), "renkei-web-"));
const renkei = (...words) => execFileSync(process.env.RENKEI, words, { cwd: directory, encoding: "utf8" });
const train = (name, ranks, ...more) => renkei("train", "--model", "mlp", "--set", "model.hidden=128", "--data", "random",
  "--batch", "32", "--steps", "25", "-n", `${ranks}`, "--run-dir", name, "--quiet", ...more);
let browser;

before(async () => {
  train("one", 1);
  train("stages", 2, "--plan", "auto", "--set", "plan.stages=2", "--micro-batches", "4");
  renkei("report", "one", "stages", "-o", "both.html", "--quiet");
  browser = await chromium.launch({ executablePath: process.env.RENKEI_CHROMIUM, args: ["--no-sandbox", "--disable-gpu"] });
});
after(async () => {
  await browser?.close();
  rmSync(directory, { recursive: true, force: true });
});

async function open(file, options = {}) {
  const page = await browser.newPage({ viewport: { width: 1400, height: 900 }, ...options });
  page.problems = [];
  page.on("pageerror", (error) => page.problems.push(error.message));
  page.on("console", (message) => message.type() === "error" && page.problems.push(message.text()));
  page.on("request", (request) => request.url().startsWith("file:") || request.url().startsWith("data:") || page.problems.push(`it fetches ${request.url()}`));
  await page.goto(`file://${join(directory, file)}`);
  await page.waitForSelector("canvas");
  await page.waitForTimeout(300);
  return page;
}

function seconds(value) {
  const size = Math.abs(value);
  if (size >= 100) return `${value.toFixed(0)} s`;
  if (size >= 1) return `${value.toFixed(2)} s`;
  if (size >= 1e-3) return `${(value * 1e3).toPrecision(3)} ms`;
  return size === 0 ? "0" : `${(value * 1e6).toPrecision(3)} µs`;
}

const rows = (page, name) => page.$$eval(`[aria-label="${name}"] tbody tr`,
  (list) => list.map((row) => [...row.children].map((cell) => cell.textContent)));

test("the page says what the tables say", async () => {
  const page = await open("stages/report.html");
  const run = JSON.parse(renkei("report", "stages", "--format", "json")).runs[0];
  assert.equal(await page.textContent(".sentence"), `${run.verdict.sentence}.`);
  const shown = new Map((await rows(page, "Seconds by cause")).map((row) => [row[0], row]));
  for (const cause of ["compute", "communication", "bubble"]) {
    if (run.time[cause] < 0.001 * run.step_seconds) continue;
    assert.equal(shown.get(cause)[1], seconds(run.time[cause]));
    run.time_of_ranks.forEach((rank, i) => assert.equal(shown.get(cause)[3 + i], seconds(rank.time[cause])));
  }
  assert.equal(shown.get("step")[1], seconds(run.step_seconds));
  const what_if = await rows(page, "What if");
  assert.deepEqual(what_if.map((row) => [row[0], row[1]]), run.what_if.map((one) => [one.cause, seconds(one.step_seconds)]));
  const parts = await rows(page, "The whole run");
  assert.deepEqual(parts.slice(0, -1).map((row) => row[0]), run.parts.map((part) => part.name));
  assert.deepEqual(page.problems, []);
});

test("nothing overflows and every chart has ink, at any width, light and dark", async () => {
  for (const width of [1400, 390])
    for (const colorScheme of ["light", "dark"]) {
      const page = await open("both.html", { viewport: { width, height: 900 }, colorScheme });
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `overflow at ${width}`);
      const empty = await page.$$eval("canvas", (list) => list.filter((canvas) => {
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        return !data.some((value) => value !== 0);
      }).length);
      assert.equal(empty, 0);
      assert.deepEqual(page.problems, []);
      await page.close();
    }
});

test("text has the contrast that WCAG AA asks for", async () => {
  for (const colorScheme of ["light", "dark"]) {
    const page = await open("stages/report.html", { colorScheme });
    const ratios = await page.evaluate(() => {
      const style = getComputedStyle(document.documentElement);
      const light = (name) => {
        const hex = style.getPropertyValue(name).trim().slice(1);
        const [r, g, b] = [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255)
          .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
      return ["--ink", "--muted", "--good", "--bad", "--accent"].flatMap((text) => [ratio(text, "--surface"), ratio(text, "--page")]);
    });
    for (const ratio of ratios) assert.ok(ratio >= 4.5, `${colorScheme}: ${ratios}`);
    await page.close();
  }
});

test("the timeline tells, zooms and moves, by mouse and by keys", async () => {
  const page = await open("stages/report.html");
  const canvas = page.locator("canvas[role=application]");
  await canvas.scrollIntoViewIfNeeded();
  const box = await canvas.boundingBox();
  for (let x = 80; x < box.width; x += 40) await page.mouse.move(box.x + x, box.y + 30);
  assert.match(await page.textContent(".tip"), /rank 0, compute: \w+ · .* · step \d+/);
  const picture = () => canvas.evaluate((one) => one.toDataURL());
  await canvas.focus();
  let last = await picture();
  for (const key of ["+", "ArrowRight", "-", "Home"]) {
    await page.keyboard.press(key);
    await page.waitForTimeout(80);
    const now = await picture();
    assert.notEqual(now, last, key);
    last = now;
  }
});

test("several runs are compared, and each can be opened", async () => {
  const page = await open("both.html");
  const runs = JSON.parse(renkei("report", "one", "stages", "--format", "json")).runs;
  const shown = await rows(page, "Runs");
  assert.deepEqual(shown.map((row) => row[0]), ["one", "stages"]);
  runs.forEach((run, i) => assert.equal(shown[i][4], seconds(run.step_seconds)));
  await page.click('[data-run="stages"]');
  assert.match(await page.textContent("#chosen"), /stages: mlp on 2 ranks/);
  assert.deepEqual(page.problems, []);
});

test("a page is small", () => assert.ok(statSync(join(directory, "stages/report.html")).size < 5e6));
