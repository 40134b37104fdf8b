// Perfetto's trace processor runs in a web worker of Perfetto's UI. This provides the parts of a worker's environment
// that it uses, and queries it with the UI's own engine class.

import { readFileSync } from "node:fs";

const [dir, trace, ...queries] = process.argv.slice(2);
const { EngineBase } = await import(dir + "engine.mjs");

// The worker's code loads its WebAssembly from the UI's server, and does not export its bridge. Both are changed here.
let source = readFileSync(dir + "engine_bundle.node.js", "utf8");
const edits = {
  "this.useMemory64 = hasMemory64Support()": "this.useMemory64 = false",
  "locateFile: (s) => s,": "locateFile: (s) => s, wasmBinary,",
  "const wasmBridge = new wasm_bridge_1.WasmBridge();": "const wasmBridge = found.bridge = new wasm_bridge_1.WasmBridge();",
};
for (const [from, to] of Object.entries(edits)) {
  if (!source.includes(from)) throw new Error(`${dir} is another version: it has no ${from}`);
  source = source.replace(from, to);
}
globalThis.self = globalThis;
globalThis.WorkerGlobalScope = class {};
globalThis.XMLHttpRequest = class {};
globalThis.location = { href: `file://${dir}` };
globalThis.importScripts = () => {};
const found = {};
const wasmBinary = readFileSync(dir + "trace_processor.wasm");
console.warn = () => {};
new Function("process", "window", "wasmBinary", "found", source)(undefined, undefined, wasmBinary, found);
while (!found.bridge.reqBufferAddr) await new Promise((done) => setTimeout(done, 10));

class Engine extends EngineBase {
  id = "node";
  mode = "WASM";
  constructor(port) {
    super();
    this.port = port;
    port.onmessage = (message) => this.onRpcResponseBytes(message.data);
  }
  rpcSendRequestBytes(data) {
    this.port.postMessage(data);
  }
}

const { port1, port2 } = new MessageChannel();
found.bridge.initialize(port1);
const engine = new Engine(port2);
const print = console.log;
console.log = console.warn;
await engine.parse(new Uint8Array(readFileSync(trace)));
await engine.notifyEof();
for (const query of queries) {
  const result = await engine.query(query);
  const rows = [];
  for (const row = result.iter({}); row.valid(); row.next())
    rows.push(result.columns().map((column) => row.get(column)));
  print(JSON.stringify(rows, (_, value) => (typeof value === "bigint" ? Number(value) : value)));
}
process.exit(0);
