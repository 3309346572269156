import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { emptyLabels, label } from "../../agent/docker/labels.ts";
import { siteLabels } from "../../agent/docker/specs.ts";
import type { Ingress } from "../../agent/ingress/ingress.ts";
import { openChannels } from "../../agent/streams/open-channel.ts";
import { StreamServer } from "../../agent/streams/stream-server.ts";
import type { DatabaseSpec } from "../../protocol/agent/jobs.ts";
import type { StreamTarget } from "../../protocol/agent/messages.ts";
import { databaseImages, ensureImages } from "../../scripts/lib/base-images.ts";
import { DatabaseHost } from "../support/database-host.ts";
import { newId } from "../support/engine.ts";
import { StreamLink } from "../support/stream-link.ts";

const host = new DatabaseHost();
const { engine, agentId } = host;
const siteId = newId("site");
let spec: DatabaseSpec;
let containerId: string;
let server: StreamServer;
let link: StreamLink;

beforeAll(async () => {
  await ensureImages(databaseImages);
  await host.open();
  spec = await host.provision("postgresql", "streams");
  containerId = await engine.createContainer({
    name: `berth-${agentId}-terminal`,
    Image: "node:24-bookworm-slim",
    Cmd: ["sleep", "600"],
    Env: ["GREETING=good morning"],
    Labels: { ...emptyLabels, ...siteLabels(siteId), [label.agent]: agentId, [label.config]: "1" },
    HostConfig: { Init: true },
  });
  await engine.startContainer(containerId);
  const ingress = { current: () => [{ containerId, address: "127.0.0.1", port: 1 }] } as unknown as Ingress;
  server = new StreamServer(openChannels({ engine, ingress, agentId }));
  link = new StreamLink(server);
}, 15 * 60_000);
afterAll(async () => {
  server.disconnected();
  await engine.removeContainer(containerId);
  await host.close();
});

it("psql reaches the database's own server and reads a hundred megabytes, at the window's pace", async () => {
  const tunnel = await link.listen({ kind: "database", databaseId: spec.databaseId, port: 5432 });
  const [login] = spec.logins;
  const { stdout } = await promisify(execFile)(
    "psql",
    [
      "--host=127.0.0.1",
      `--port=${tunnel.port}`,
      `--username=${login?.username}`,
      "--tuples-only",
      "--no-align",
      "--command=SELECT repeat(md5(n::text), 32) FROM generate_series(1, 100000) n",
      spec.databaseName ?? "",
    ],
    { env: { ...process.env, PGPASSWORD: login?.password ?? "" }, maxBuffer: 200 * 1024 * 1024 },
  );
  expect(stdout.length).toBe(100_000 * (32 * 32 + 1));
  tunnel.close();
});

const terminal = (more: Partial<Extract<StreamTarget, { kind: "terminal" }>> = {}) =>
  link.open({
    kind: "terminal",
    siteId,
    command: null,
    terminal: "xterm-256color",
    columns: 90,
    rows: 30,
    ...more,
  });

it("a terminal in the site: its variables, its size, another size, and the exit code of its shell", async () => {
  const peer = terminal();
  await vi.waitUntil(() => peer.isOpen, 10_000);
  await peer.send(Buffer.from("echo $GREETING on $TERM; stty size\n"));
  await vi.waitUntil(() => /good morning on xterm-256color\r\n30 90\r\n/.test(peer.text), 10_000);
  server.receive({ type: "resizeStream", streamId: peer.id, columns: 132, rows: 50 });
  await vi.waitUntil(
    async () => {
      await peer.send(Buffer.from("stty size\n"));
      return peer.text.includes("50 132\r\n");
    },
    { timeout: 10_000, interval: 100 },
  );
  await peer.send(Buffer.from("exit 7\n"));
  await vi.waitUntil(() => peer.closed, 10_000);
  expect(peer.closed).toMatchObject({ error: null, exitCode: 7 });
});

/** The command lines of all processes of the container, as the host sees them. */
const processes = (): string[] =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const isInside = readFileSync(`/proc/${pid}/cgroup`, "utf8").includes(containerId);
        return isInside ? [readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ")] : [];
      } catch {
        return [];
      }
    });

it("who leaves takes along what ran in the terminal, also what ignores the hang-up", async () => {
  const mark = randomBytes(4).readUInt32BE();
  const polite = terminal();
  await vi.waitUntil(() => polite.isOpen, 10_000);
  await polite.send(Buffer.from(`sleep 1${mark}\n`));
  const stubborn = terminal({ command: `trap '' HUP; while :; do sleep 2${mark}; done` });
  const running = () => processes().filter((line) => line.includes(String(mark))).length;
  await vi.waitUntil(() => running() >= 2, 10_000);
  polite.close();
  stubborn.close();
  await vi.waitUntil(() => !processes().some((line) => line.includes("trap")), 10_000);
  await vi.waitUntil(() => !processes().some((line) => line.includes(`1${mark}`)), 10_000);
});

it("a terminal ends with the site's container, and says why another cannot be opened", async () => {
  const peer = terminal();
  await vi.waitUntil(() => peer.isOpen, 10_000);
  await engine.stopContainer(containerId, 1);
  await vi.waitUntil(() => peer.closed, 10_000);
  const next = terminal();
  await vi.waitUntil(() => next.closed, 10_000);
  expect(next.closed?.error).toContain("is not running");
});

it("a tunnel ends with the database, and says why another cannot be opened", async () => {
  const target = { kind: "database", databaseId: spec.databaseId, port: 5432 } as const;
  const peer = link.open(target);
  await vi.waitUntil(() => peer.isOpen, 10_000);
  await host.does("database.stop", { databaseId: spec.databaseId, accountId: spec.accountId });
  await vi.waitUntil(() => peer.closed, 30_000);
  const next = link.open(target);
  await vi.waitUntil(() => next.closed, 10_000);
  expect(next.closed?.error).toContain("is not running");
});
