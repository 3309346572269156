import { expect, it } from "vitest";
import { isErrorLine } from "../../protocol/error-line.ts";

it.each([
  "src/app.ts(12,5): error TS2322: Type 'string' is not assignable to type 'number'.",
  "error[E0308]: mismatched types",
  "main.c:3:10: fatal error: zlib.h: No such file or directory",
  "./main.go:5:2: undefined: handler",
  "Error: STRIPE_KEY is not set",
  "Error [ERR_MODULE_NOT_FOUND]: Cannot find module '/app/server.js'",
  "ModuleNotFoundError: No module named 'flask'",
  'Exception in thread "main" java.lang.IllegalStateException: no port',
  "Caused by: java.net.ConnectException: Connection refused",
  "app.rb:1:in '<main>': undefined local variable or method 'x' for main (NameError)",
  "PHP Fatal error:  Uncaught TypeError: x",
  "panic: runtime error: index out of range [1] with length 1",
  "Module not found: Can't resolve './missing'",
  "Type error: Cannot find name 'x'.",
  '✘ [ERROR] Could not resolve "x"',
  'npm error Missing script: "build"',
])("a line says why a program ended: %s", (line) => {
  expect(isErrorLine(line)).toBe(true);
});

it.each([
  "",
  "warning: unused import",
  "Compiled with 0 errors",
  "error during build:",
  "loading plugin error-pages",
  "    at Object.<anonymous> (/app/config.js:2:36)",
  "npm error code 1",
])("a line says nothing of why a program ended: %s", (line) => {
  expect(isErrorLine(line)).toBe(false);
});
