#!/usr/bin/env node
// Starts the program of the package for this system, in this process where Node can do that.
"use strict";
const { spawn } = require("node:child_process");
const { basename } = require("node:path");

const name = basename(__filename, ".js");
const platform = `${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`@cliq/cliq-${platform}/bin/${name}`);
} catch {
  console.error(`error: there is no package @cliq/cliq-${platform}: npm left it out (--no-optional), or this system is not supported`);
  console.error("hint: there are packages for Linux with glibc and for macOS, x64 and arm64; `npm install --include=optional` installs them");
  process.exit(1);
}
if (typeof process.execve === "function") {
  process.removeAllListeners("warning");
  process.emitWarning = () => {};
  process.execve(program, [name, ...process.argv.slice(2)], process.env);
}
const child = spawn(program, process.argv.slice(2), { stdio: "inherit", argv0: name });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (error) => {
  console.error(`error: ${program} cannot be started: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
