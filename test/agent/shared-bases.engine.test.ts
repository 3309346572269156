import { execFileSync } from "node:child_process";
import { afterAll, beforeAll, expect, it } from "vitest";
import { withSharedBases, type SharedBase } from "../../agent/image-build/dockerfile/shared.ts";
import { openSharedBases } from "../../agent/image-build/shared-bases.ts";
import { ensureImages } from "../../scripts/lib/base-images.ts";
import { engine } from "../support/engine.ts";

const repository = `berth.invalid/berth-test/shared-${process.pid}`;
const tags: string[] = [];
const signal = new AbortController().signal;
const base = { kind: "python", image: "python:3.13-slim-bookworm" };
const docker = (...args: string[]) => execFileSync("docker", args, { encoding: "utf8" }).trim();
const shared = openSharedBases({
  engine,
  enter: () => Promise.resolve({ signal, end: () => undefined }),
  repository,
  buildCaFile: null,
});

const node = "node:24-bookworm-slim";
beforeAll(() => ensureImages([base.image, node]), 15 * 60_000);
afterAll(async () => {
  for (const tag of [...tags, ...(await engine.imageTags(repository))]) await engine.removeImage(tag);
});

/** As a tenant's build. */
async function build(tenant: string, text: string): Promise<string> {
  const tag = `berth-test/shared-of-${tenant}:${process.pid}`;
  tags.push(tag);
  await engine.build({
    context: null,
    dockerfile: { name: "Dockerfile", text },
    tag,
    labels: {},
    buildArgs: {},
    cacheNamespace: tenant,
    secrets: new Map(),
    signal,
    onLine: () => undefined,
  });
  return tag;
}

it("what sites share is made once, no build of a tenant's changes it, and it is made again after a prune", async () => {
  const name = await shared(base, { signal, log: () => undefined });
  const id = await engine.imageId(name ?? "");
  expect(id).not.toBeNull();
  const program = "/opt/venv/bin/python";
  const spoilt = await build("one", `FROM ${name}\nRUN rm ${program} && echo spoilt > ${program}\n`);
  expect(docker("run", "--rm", spoilt, "cat", program)).toBe("spoilt");
  const other = await build("two", `FROM ${name}\nRUN ${program} -c "print(1)"\n`);
  expect(docker("run", "--rm", other, program, "-c", "print(2)")).toBe("2");
  expect(await shared(base, { signal, log: () => undefined })).toBe(name);
  expect(await engine.imageId(name ?? "")).toBe(id);
  docker("rmi", name ?? "");
  expect(await shared(base, { signal, log: () => undefined })).toBe(name);
  expect(await engine.imageId(name ?? "")).not.toBeNull();
});

it("an install by npm finds all that Node has compiled of npm, and leaves nothing there for another", async () => {
  const install = async (tenant: string) => {
    const steps = [
      `FROM ${node}`,
      "WORKDIR /app",
      `RUN ["sh","-c","echo '{}' > package.json"]`,
      `RUN --mount=type=cache,id=${tenant}-${process.pid},target=/root/.npm ["sh","-c","ls $NODE_COMPILE_CACHE > /before; NODE_DEBUG_NATIVE=COMPILE_CACHE npm install > /found 2>&1; touch $NODE_COMPILE_CACHE/spoilt; true"]`,
    ];
    const ask = (npm: SharedBase) => shared(npm, { signal, log: () => undefined });
    const image = await build(tenant, `${await withSharedBases(steps.join("\n"), ask)}\n`);
    return (...command: string[]) => docker("run", "--rm", image, ...command);
  };
  const first = await install("npm-one");
  const found = first("cat", "/found");
  expect(found.match(/was accepted/g)?.length).toBeGreaterThan(100);
  expect(found).not.toMatch(/was rejected|writing cache/);
  expect(first("sh", "-c", "ls -A /opt/npm-code 2> /dev/null || true")).toBe("");
  const second = await install("npm-two");
  expect(second("cat", "/before")).toMatch(/^v24\.\S+$/);
});
