import { vi } from "vitest";

/** Conditions are waited for at least this long. What never comes still fails; what is only slow does not: vitest's own limit is a second. */
const leastMs = 30_000;

type Options = number | { timeout?: number; interval?: number };
const patient = (options: Options = {}) => {
  const given = typeof options === "number" ? { timeout: options } : options;
  return { ...given, timeout: Math.max(given.timeout ?? 0, leastMs) };
};

const { waitFor, waitUntil } = vi;
// Files of the Worker's tier share a runtime, where it is as the file before left it.
if (waitUntil.name !== "waitPatiently") {
  vi.waitFor = (callback, options) => waitFor(callback, patient(options));
  vi.waitUntil = function waitPatiently(callback, options) {
    return waitUntil(callback, patient(options));
  };
}
