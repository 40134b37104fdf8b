// A headless Chromium for the pictures in docs/. Programs that use it must run in the directory that src/cli/browser
// prints, because it has the npm packages.

import { mkdtempSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

const require = createRequire(join(process.cwd(), "package.json"));
const { chromium: browsers } = require("playwright-core");
const { default: chromium } = await import(require.resolve("@sparticuz/chromium"));

/// A new browser window with the options of a playwright context (viewport, colorScheme).
export async function open(options) {
  return browsers.launchPersistentContext(mkdtempSync(join(tmpdir(), "picture-")), {
    ...options,
    executablePath: await chromium.executablePath(),
    args: [
      "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--no-zygote", "--single-process",
      "--disable-background-networking", "--disable-component-update", "--disable-sync",
    ],
  });
}
