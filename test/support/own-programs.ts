import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, vi } from "vitest";

/** Each test of the file finds no programs but those that it adds, as shell scripts. */
export function ownPrograms() {
  let folder = "";
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "berth-programs-"));
    vi.stubEnv("PATH", folder);
  });
  afterEach(() => {
    vi.unstubAllEnvs();
    rmSync(folder, { recursive: true });
  });
  const pathOf = (name: string): string => join(folder, name);
  return {
    pathOf,
    add: (name: string, script = ""): void =>
      writeFileSync(pathOf(name), `#!/bin/sh\n${script}\n`, { mode: 0o755 }),
    remove: (name: string): void => rmSync(pathOf(name)),
  };
}
