// Bundles source/ into one HTML file, built/report.html, which is committed: building Renkei needs no npm.
import { build } from "esbuild";
import { readFileSync, writeFileSync, mkdirSync } from "node:fs";

const script = await build({ entryPoints: ["source/main.ts"], bundle: true, minify: true, write: false,
                             format: "iife", target: "es2022", charset: "utf8" });
const style = await build({ entryPoints: ["source/style.css"], bundle: true, minify: true, write: false });
const page = readFileSync("source/page.html", "utf8")
  .replace("/*STYLE*/", () => style.outputFiles[0].text.trim())
  .replace("/*SCRIPT*/", () => script.outputFiles[0].text.trim().replaceAll("</script", "<\\/script"));
mkdirSync("built", { recursive: true });
writeFileSync("built/report.html", page);
