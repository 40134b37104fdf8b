// Checks all pages of a report in a headless Chromium, and creates a picture of two of them.
//
//     node report-picture.mjs REPORT PAGE PICTURE [KERNELS]
//
// KERNELS: how many kernels the report has. If there are several, their table is sorted. The picture shows the summary and PAGE, light and dark, 1280 and 400 pixels wide. Must run in the directory that
// src/cli/browser prints.

import { pathToFileURL } from "node:url";
import { open } from "./browser.mjs";

const [report, page, picture, kernels = "2"] = process.argv.slice(2);
const top = pathToFileURL(report + "/").href;
const problems = [];

// The lowest contrast between text and its background, by WCAG's formula. Small text needs at least 4.5.
const contrast = () => {
  const parse = (text) => text.match(/[\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const background = (element) => {
    for (; element; element = element.parentElement) {
      const color = parse(getComputedStyle(element).backgroundColor);
      if (color.length < 4 || color[3] > 0) return color;
    }
    return [255, 255, 255];
  };
  let lowest = [21, ""];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.getClientRects().length || element.tagName === "SCRIPT") continue;
    const [a, b] = [parse(getComputedStyle(element).color), background(element)].map(luminance).sort((a, b) => b - a);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < lowest[0]) lowest = [ratio, `${element.className || element.tagName}: ${walker.currentNode.data.trim()}`];
  }
  return lowest;
};

async function visit(tab, path, width) {
  await tab.goto(top + path);
  const name = `${path} at ${width}`;
  const wide = await tab.evaluate(() => document.documentElement.scrollWidth);
  if (wide > width) problems.push(`${name}: the page is ${wide} wide`);
  const [ratio, where] = await tab.evaluate(contrast);
  if (ratio < 4.5) problems.push(`${name}: contrast ${ratio.toFixed(2)} of ${where}`);
}

// Visits all pages that can be reached from the summary, and checks all links.
async function follow(tab, width) {
  const seen = new Set(["index.html"]);
  for (const path of seen) {
    await visit(tab, path, width);
    const links = await tab.evaluate(() => [...document.links].map((link) => link.href));
    for (const link of links) {
      const [file, id] = link.split("#");
      if (!file.startsWith(top)) problems.push(`${path}: a link to ${link}`);
      else seen.add(file.slice(top.length));
      if (id && file === tab.url().split("#")[0] && !(await tab.evaluate((id) => !!document.getElementById(id), id)))
        problems.push(`${path}: no #${id}`);
    }
  }
  return seen.size;
}

async function sorts(tab) {
  await tab.goto(top + "index.html");
  const names = () => tab.$$eval("#kernels tbody th", (cells) => cells.map((cell) => cell.textContent));
  const first = await names();
  await tab.focus("#kernels thead th:first-child button");
  await tab.keyboard.press("Enter");
  const sorted = await names();
  const expected = [...first].sort((a, b) => a.localeCompare(b));
  if (first.length < 2 || JSON.stringify(sorted) !== JSON.stringify(expected)) problems.push(`kernels sort as ${sorted}`);
}

const shots = [];
for (const [colorScheme, width] of [["light", 1280], ["dark", 1280], ["light", 400], ["dark", 400]]) {
  const context = await open({ viewport: { width, height: 1000 }, colorScheme });
  await context.route((url) => url.protocol !== "file:" && url.protocol !== "data:", (route) => {
    problems.push(`a request to ${route.request().url()}`);
    return route.abort();
  });
  const tab = context.pages()[0] ?? (await context.newPage());
  tab.on("pageerror", (error) => problems.push(error.message));
  const pages = await follow(tab, width);
  if (width === 1280 && colorScheme === "light" && kernels !== "1") await sorts(tab);
  console.log(`${colorScheme} ${width}: ${pages} pages`);
  await tab.goto(top + (colorScheme === "light" ? "index.html" : page));
  shots.push(await tab.screenshot({ type: "png" }));
  await context.close();
}

const image = (shot, width) => `<img width=${width} src="data:image/png;base64,${shot.toString("base64")}">`;
const context = await open({ viewport: { width: 1720, height: 1640 } });
const tab = context.pages()[0] ?? (await context.newPage());
await tab.setContent(`<body style="margin:0;background:#8b949e;display:grid;gap:16px;padding:16px;
  grid-template-columns:1024px 320px;width:max-content">${image(shots[0], 1024)}${image(shots[2], 320)}${image(shots[1], 1024)}${image(shots[3], 320)}`);
await (await tab.$("body")).screenshot({ path: picture });
await context.close();
if (problems.length) {
  console.error(problems.join("\n"));
  process.exit(1);
}
