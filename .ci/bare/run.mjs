// Runs a program for wasm32-unknown-unknown, which imports nothing, and ends with its exit code.
import { readFileSync } from "node:fs";

const { instance } = await WebAssembly.instantiate(readFileSync(process.argv[2]), {});
process.exitCode = instance.exports.main(0, 0);
