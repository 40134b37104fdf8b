// Opens a trace in Perfetto's UI in a headless Chromium, selects an API call, and takes a screenshot.
//
//     node perfetto-picture.mjs UI TRACE RECORDS RANGE CALL PICTURE
//
// UI is the directory with the files of Perfetto's UI, RECORDS is the same trace as JSON lines. The picture shows the time
// of all ranges (markers) with the name RANGE. The first call of the function CALL in that time is selected. Must run in the
// directory that src/cli/browser prints.

import { createReadStream, existsSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { open } from "./browser.mjs";

const [ui, trace, records, range, name, picture] = process.argv.slice(2);

const lines = readFileSync(records, "utf8").trimEnd().split("\n").map((line) => JSON.parse(line));
const ranges = lines.filter((line) => line.type === "marker" && line.text === range);
const from = Math.min(...ranges.map((range) => range.start)), to = Math.max(...ranges.map((range) => range.end));
const margin = Math.round((to - from) / 20);
const [call] = lines
  .filter((line) => line.type === "call" && line.name === name && line.start >= from && line.end <= to)
  .sort((a, b) => a.start - b.start);
if (!call) throw new Error(`${records} has no range ${range} with a call of ${name}`);

const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm", ".json": "application/json" };
const server = createServer((request, response) => {
  const path = normalize(decodeURIComponent(new URL(request.url, "http://x").pathname));
  const file = path === "/x.pftrace" ? trace : join(ui, path === "/" ? "index.html" : path);
  if (!existsSync(file) || !statSync(file).isFile()) return response.writeHead(404).end();
  response.writeHead(200, { "content-type": types[extname(file)] ?? "application/octet-stream" });
  createReadStream(file).pipe(response);
});
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const site = `http://127.0.0.1:${server.address().port}`;

const context = await open({ viewport: { width: 1500, height: 1000 } });
const tab = context.pages()[0] ?? (await context.newPage());
// The page may only access this server.
await context.route((url) => url.origin !== site, (route) => route.abort());
tab.on("pageerror", (error) => console.error("page:", error.message));
const route = new URLSearchParams({
  url: `${site}/x.pftrace`,
  hideSidebar: "true",
  ts: call.start,
  dur: call.end - call.start,
  startupCommands: JSON.stringify([{ id: "dev.perfetto.ExpandTracksByRegex", args: [".*"] }]),
});
await tab.goto(`${site}/#!/viewer?${route}`);
await tab.getByText(name).first().waitFor({ state: "attached", timeout: 60000 });
await tab.keyboard.press("q"); // shows the panel with the selected slice
await tab.evaluate(
  ([from, to]) => app.trace.timeline.setViewportTime(BigInt(from), BigInt(to)),
  [from - margin, to + margin],
);
await tab.evaluate(() => waitForPerfettoIdle());
await tab.screenshot({ path: picture });
await context.close();
server.close();
