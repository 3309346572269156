import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { deletedBytes } from "../../agent/docker/deleted-files.ts";

const id = "c".repeat(64);
let root: string;
beforeEach(() => {
  // Not in memory, where the machine keeps other temporary files there.
  root = mkdtempSync(join(import.meta.dirname, ".deleted-"));
});
afterEach(() => rmSync(root, { recursive: true }));

function processHolds(pid: number, group: string, descriptors: readonly number[]): void {
  const folder = join(root, "proc", String(pid), "fd");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(root, "proc", String(pid), "cgroup"), group);
  descriptors.forEach((descriptor, index) =>
    symlinkSync(`/proc/self/fd/${descriptor}`, join(folder, String(index))),
  );
}

it.each([
  ["1", `9:cpu:/x/${id}\n8:pids:/docker/${id}\n`, `pids/docker/${id}`],
  ["2", `0::/system.slice/docker-${id}.scope\n`, `system.slice/docker-${id}.scope`],
])("files without a name are found once each, in control groups of version %s", async (_, group, place) => {
  const open = (name: string) => {
    const descriptor = openSync(join(root, name), "w");
    writeSync(descriptor, Buffer.alloc(1024 * 1024, 1));
    return descriptor;
  };
  const [gone, named] = [open("gone"), open("named")];
  unlinkSync(join(root, "gone"));
  processHolds(4711, group, [gone, named]);
  processHolds(4712, group, [gone]);
  const folder = join(root, "sys/fs/cgroup", place);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "cgroup.procs"), "4711\n4712\n4713\n");
  expect((await deletedBytes({ id, pid: 4711 }, root)) / 1024 / 1024).toBeCloseTo(1, 0);
  // Another's by now, or none.
  expect(await deletedBytes({ id: "d".repeat(64), pid: 4711 }, root)).toBe(0);
  expect(await deletedBytes({ id, pid: 0 }, root)).toBe(0);
  for (const descriptor of [gone, named]) closeSync(descriptor);
});
