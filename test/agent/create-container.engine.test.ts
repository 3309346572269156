import { randomBytes } from "node:crypto";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import {
  networkName,
  siteContainer,
  siteLabels,
  volumeLabels,
  volumeName,
} from "../../agent/docker/specs.ts";
import type { VolumeSummary } from "../../agent/docker/engine.ts";
import type { Host } from "../../agent/host.ts";
import { JobError } from "../../agent/job.ts";
import { createContainer } from "../../agent/sites/create-container.ts";
import type { RunSpec } from "../../protocol/agent/jobs.ts";
import { engine, newId } from "../support/engine.ts";
import { emptyDisk } from "../support/empty-disk.ts";
import { runSpec } from "../support/run-spec.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const agentId = randomBytes(8).toString("hex");
const accountId = newId("account");
const image = `berth-test/copies:${agentId}`;
const folders = Array.from({ length: 40 }, (_, at) => `/x/${at}`);
const megabytes = 40;
/** Far more than the image itself, and than can be copied in a moment. */
const begun = 60;

beforeAll(async () => {
  const text = [
    "FROM node:24-bookworm-slim",
    `RUN mkdir -p ${folders.join(" ")} && head -c ${megabytes * 1024 ** 2} /dev/zero > /x/0/file`,
    `RUN for folder in ${folders.slice(1).join(" ")}; do ln /x/0/file $folder/file; done`,
    `VOLUME ${JSON.stringify(folders.slice(1))}`,
    "",
  ].join("\n");
  await engine.build({
    context: null,
    dockerfile: { name: "Dockerfile", text },
    tag: image,
    labels: { "berth.test": "true" },
    buildArgs: {},
    cacheNamespace: agentId,
    secrets: new Map(),
    signal: new AbortController().signal,
    onLine: () => undefined,
  });
});

afterAll(async () => {
  await engine.removeNetwork(networkName(accountId));
  await engine.removeImage(image);
});

const sizeOf = (volumes: readonly VolumeSummary[]): number =>
  volumes
    .flatMap(({ folder }) => readdirSync(folder).map((name) => statSync(join(folder, name)).size))
    .reduce((sum, bytes) => sum + bytes, 0) /
  1024 ** 2;

it("what an image has its volumes filled with is ended once the disk is full, and is gone", async () => {
  const full = new AbortController();
  const run: RunSpec = {
    ...runSpec(),
    siteId: newId("site"),
    accountId,
    volumes: [{ name: "data", mountPath: "/x/0" }],
  };
  await engine.ensureVolume(volumeName(run.siteId, "data"), volumeLabels(agentId, run, "data"));
  const workDirectory = temporaryFolder();
  const host = { engine, agentId, buildRoom: emptyDisk(full.signal), workDirectory } as unknown as Host;
  const since = new Date();
  const filling = async () => [
    ...(await engine.unclaimedVolumes(since)),
    ...(await engine.volumes(siteLabels(run.siteId))),
  ];
  const made = createContainer(host, run, siteContainer(agentId, run, newId("deployment"), image, ""));
  made.catch(() => undefined);
  await vi.waitFor(async () => expect(sizeOf(await filling())).toBeGreaterThan(begun), {
    timeout: 30_000,
    interval: 20,
  });
  full.abort(new JobError("This host ran out of free disk."));
  await expect(made).rejects.toThrow("This host ran out of free disk.");
  const left = await filling();
  expect(left.map(({ name }) => name)).toEqual([volumeName(run.siteId, "data")]);
  expect(sizeOf(left)).toBe(0);
  expect(readdirSync(workDirectory)).toEqual([]);
  expect(await engine.removeVolume(volumeName(run.siteId, "data"))).toBe(true);
});
