import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import { emptyLabels, label } from "../../agent/docker/labels.ts";
import { siteLabels } from "../../agent/docker/specs.ts";
import type { Ingress } from "../../agent/ingress/ingress.ts";
import { browseSite } from "../../agent/running/site-files.ts";
import { engine } from "../support/engine.ts";

const agentId = `test${randomBytes(6).toString("hex")}`;
const siteId = `site_${randomBytes(14).toString("hex").slice(0, 27)}` as const;
const volume = `berth-${siteId}-data`;
let containerId: string;

const browse = (path: string, of: string | null = null) => {
  const ingress = { current: () => [{ containerId, address: "127.0.0.1", port: 1 }] } as unknown as Ingress;
  return browseSite({ engine, ingress, agentId }, { siteId, path, volume: of, masks: ["masked-one"] });
};

beforeAll(async () => {
  await engine.ensureVolume(volume, {
    ...siteLabels(siteId),
    [label.agent]: agentId,
    [label.volume]: "data",
  });
  containerId = await engine.createContainer({
    name: `berth-${agentId}`,
    Image: "node:24-bookworm-slim",
    Cmd: [
      "sh",
      "-c",
      "echo token-canary and masked-one >/srv/env; echo kept >/data/file; ln -s /etc/hostname /data/link; exec sleep 600",
    ],
    Env: ["TOKEN=token-canary"],
    Labels: {
      ...emptyLabels,
      ...siteLabels(siteId),
      [label.agent]: agentId,
      [label.secrets]: "TOKEN",
      [label.config]: "1",
    },
    HostConfig: {
      Init: true,
      Mounts: [{ Type: "volume", Source: volume, Target: "/data" }],
    },
  });
  await engine.startContainer(containerId);
});
afterAll(async () => {
  await engine.removeContainer(containerId);
  await engine.removeVolume(volume);
});

it("a running container's files are its own, with volumes in their places and secrets masked", async () => {
  await expect.poll(() => browse("/srv/env")).toMatchObject({ text: "••• and •••\n" });
  await expect.poll(() => browse("/data/file")).toMatchObject({ text: "kept\n" });
  const hostname = await browse("/data/link");
  expect(hostname).toMatchObject({ path: "/etc/hostname", text: `${containerId.slice(0, 12)}\n` });
  expect(await browse("/")).toMatchObject({ kind: "folder", path: "/" });
  await expect(browse("/proc/1/environ")).rejects.toThrow("kernel");
});

it("a volume is shown by itself, also of a site that does not run, and links lead nowhere outside", async () => {
  await engine.stopContainer(containerId, 1);
  await expect(browse("/srv/env")).rejects.toThrow("is not running");
  expect(await browse("/file", "data")).toMatchObject({ kind: "file", path: "/file", text: "kept\n" });
  await expect(browse("/link", "data")).rejects.toThrow("no such file");
  await expect(browse("/", "other")).rejects.toThrow("no such volume");
});
