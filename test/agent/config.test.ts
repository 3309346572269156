import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { availableParallelism, totalmem } from "node:os";
import { inspect } from "node:util";
import { expect, it } from "vitest";
import { readConfig, slotsOf } from "../../agent/config.ts";
import { hardening } from "../../agent/docker/specs.ts";
import { caddyConfig } from "../../agent/ingress/caddy.ts";
import { ingressContainer } from "../../agent/ingress/container.ts";

const token = `hst_0${"a".repeat(43)}`;
const least = {
  BERTH_URL: "https://berth.example",
  BERTH_HOST_TOKEN: token,
  BERTH_STATE_DIR: "/var/lib/berth",
};

it("needs the control plane, a token and a place for its state; the rest has defaults", () => {
  expect(readConfig(least)).toMatchObject({
    controlPlaneUrl: "https://berth.example",
    dockerSocket: "/var/run/docker.sock",
    ingress: { address: "", port: 80, responderPort: 5300, statusPort: 5301 },
    peerPort: 5302,
    slots: slotsOf({ processors: availableParallelism(), memoryMb: totalmem() / 1024 ** 2 }, 2048),
    settings: {
      drainSeconds: 2,
      drainMaxSeconds: 30,
      probationSeconds: 5,
      buildCaFile: null,
      insecureGitHosts: [],
    },
  });
  for (const name of Object.keys(least))
    expect(() => readConfig({ ...least, [name]: undefined })).toThrow(name);
});

it("says what is wrong with a setting in words that need no knowledge of the schema", () => {
  expect(() => readConfig({ ...least, BERTH_SLOTS: "0" })).toThrow(/must be at least 1\s+→ at BERTH_SLOTS/);
  expect(() => readConfig({ ...least, BERTH_STATE_DIR: undefined })).toThrow(
    /required\s+→ at BERTH_STATE_DIR/,
  );
});

it("builds two more at once than the machine has processors, in half of its memory, and three at least", () => {
  const slots = (processors: number, gib: number, buildMb = 2048) =>
    slotsOf({ processors, memoryMb: gib * 1024 }, buildMb);
  expect([slots(1, 64), slots(2, 2), slots(2, 15.5), slots(2, 16), slots(8, 31), slots(64, 512)]).toEqual([
    3, 3, 3, 4, 7, 16,
  ]);
  expect([slots(8, 16, 1024), slots(8, 16, 8192)]).toEqual([8, 3]);
  expect(readConfig({ ...least, BERTH_SLOTS: "2" }).slots).toBe(2);
});

it("takes a control plane by http on its own machine only", () => {
  for (const url of [
    "http://localhost:8787",
    "http://a.localhost",
    "http://127.0.0.2:1",
    "http://[::1]:8787",
  ])
    expect(readConfig({ ...least, BERTH_URL: url }).controlPlaneUrl).toBe(url);
});

it.each([
  ["https://berth.example", true],
  ["http://localhost:8787", true],
  ["http://127.0.0.1:8787", true],
  ["http://[::1]:8787", true],
  ["http://berth.example", false],
  ["http://127.0.0.1.berth.example", false],
  ["http://localhost.berth.example", false],
  ["http://127.0.0.1@berth.example", false],
  ["http://[::1].berth.example", false],
  ["http://10.0.0.1:8787", false],
])("the install script takes the same control planes: %s %s", (url, isTaken) => {
  const script = readFileSync(new URL("../../scripts/install.sh", import.meta.url), "utf8");
  const functions = script.replaceAll("@SITE_URL@", url).replace(/\n.*\n$/, "\n");
  const { status, stderr } = spawnSync("sh", ["-c", `${functions}check_address`], { encoding: "utf8" });
  expect([status, stderr]).toEqual(
    isTaken ? [0, ""] : [1, expect.stringContaining("over http only on their own machine")],
  );
});

it("refuses what is out of range, and says which value it is", () => {
  for (const [name, value] of [
    ["BERTH_URL", "ftp://berth.example"],
    ["BERTH_URL", "berth.example"],
    ["BERTH_URL", "http://berth.example"],
    ["BERTH_URL", "http://localhost.berth.example"],
    ["BERTH_URL", "http://127.0.0.1.berth.example"],
    ["BERTH_URL", "http://127.0.0.1@berth.example"],
    ["BERTH_URL", "http://10.0.0.1:8787"],
    ["BERTH_HOST_TOKEN", "hst_short"],
    ["BERTH_INGRESS_PORT", "0"],
    ["BERTH_INGRESS_PORT", "65536"],
    ["BERTH_INGRESS_PORT", "http"],
    ["BERTH_INGRESS_ADDRESS", "localhost"],
    ["BERTH_SLOTS", "0"],
    ["BERTH_SLOTS", "1.5"],
    ["BERTH_DRAIN_SECONDS", "0"],
  ] as const)
    expect(() => readConfig({ ...least, [name]: value }), `${name}=${value}`).toThrow(name);
});

it("shows its token to nobody who prints it, nor in the error of a wrong one", () => {
  const config = readConfig(least);
  expect(config.hostToken.reveal()).toBe(token);
  for (const shown of [JSON.stringify(config), inspect(config, { depth: 9, showHidden: true })])
    expect(shown).not.toContain("aaaa");
  const wrong = "hst_almost-a-secret";
  expect(() => readConfig({ ...least, BERTH_HOST_TOKEN: wrong })).toThrow(/BERTH_HOST_TOKEN/);
  expect(() => readConfig({ ...least, BERTH_HOST_TOKEN: wrong })).not.toThrow(wrong);
});

it("names images so that another site's or host's cannot be guessed, and keeps the names", () => {
  const config = readConfig(least);
  const other = readConfig({ ...least, BERTH_HOST_TOKEN: `hst_0${"b".repeat(43)}` });
  const name = config.imageRepository("site_1");
  expect(name).toMatch(/^berth-site\/[0-9a-f]{32}$/);
  expect(readConfig(least).imageRepository("site_1")).toBe(name);
  expect(new Set([name, config.imageRepository("site_2"), other.imageRepository("site_1")]).size).toBe(3);
});

const ingress = { address: "0.0.0.0", port: 80, responderPort: 5300, statusPort: 5301, tls: null };

it("the ingress is replaced when anything of it changes, and left alone when nothing does", () => {
  const mark = (port: number, tlsPort?: number) =>
    ingressContainer("a", {
      ...ingress,
      port,
      tls: tlsPort === undefined ? null : { port: tlsPort },
    }).spec.Labels["berth.config"];
  expect(mark(80)).toBe(mark(80));
  expect(new Set([mark(80), mark(8080), mark(80, 443), mark(80, 8443)]).size).toBe(4);
});

it("visitors are served at all addresses of the host, of IPv6 too, or at the one that is named", () => {
  const listens = (address?: string) => {
    const { ingress } = readConfig({ ...least, ...(address && { BERTH_INGRESS_ADDRESS: address }) });
    const { apps } = caddyConfig(ingress, 1) as {
      apps: { http: { servers: { sites: { listen: string[] } } } };
    };
    return apps.http.servers.sites.listen;
  };
  expect([listens(), listens("192.0.2.1"), listens("2001:db8::1")]).toEqual([
    [":80"],
    ["192.0.2.1:80"],
    ["[2001:db8::1]:80"],
  ]);
});

it("no request is taken before its visitor has shown that its address is his: it may be one that a site is open to", () => {
  const { apps } = caddyConfig({ ...ingress, tls: { port: 443 } }, 1) as {
    apps: { http: { servers: { secure: object } } };
  };
  expect(apps.http.servers.secure).toMatchObject({ allow_0rtt: false });
});

it("sites are served by https where BERTH_TLS_PORT names a port, and by http only where it is empty or missing", () => {
  const tls = (more: object) => readConfig({ ...least, ...more }).ingress.tls;
  expect(tls({})).toBe(null);
  expect(tls({ BERTH_TLS_PORT: "" })).toBe(null);
  expect(tls({ BERTH_TLS_PORT: "443" })).toMatchObject({ port: 443 });
  for (const wrong of [
    { BERTH_TLS_PORT: "https" },
    { BERTH_TLS_PORT: "443", BERTH_ACME_DIRECTORY: "http://acme.example.com" },
    { BERTH_TLS_PORT: "443", BERTH_ACME_EMAIL: "nobody" },
    { BERTH_TLS_PORT: "443", BERTH_ACME_CA_FILE: "/does/not/exist" },
  ])
    expect(() => tls(wrong)).toThrow(/BERTH_/);
});

it("the ingress has a part of the host's memory, and is ended after everything else where that is short", () => {
  const of = (hostMb: number) => ingressContainer("a", ingress, hostMb).spec.HostConfig;
  expect([1024, 16_384, 262_144].map((hostMb) => (of(hostMb)?.Memory ?? 0) / 1024 / 1024)).toEqual([
    384, 2048, 4096,
  ]);
  expect(of(1024)?.OomScoreAdj).toBeLessThan(Math.min(0, hardening.OomScoreAdj));
});

it("the ingress outweighs a site of two processors where they are short", () => {
  expect(ingressContainer("a", ingress).spec.HostConfig?.CpuShares).toBeGreaterThan(2 * 1024);
});

it("the ingress may bind low ports, and nothing else of the host", () => {
  const { spec } = ingressContainer("a", ingress);
  expect(spec.HostConfig).toMatchObject({
    CapDrop: ["ALL"],
    CapAdd: ["NET_BIND_SERVICE"],
    SecurityOpt: ["no-new-privileges"],
    RestartPolicy: { Name: "unless-stopped" },
  });
  expect(spec.HostConfig?.Binds ?? []).toEqual([]);
  expect(JSON.stringify(spec)).toContain('\\"admin\\":{\\"disabled\\":true');
});
