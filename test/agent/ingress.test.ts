import { spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { Resolver } from "node:dns/promises";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import type { Ingress, Target } from "../../agent/ingress/ingress.ts";
import { certificatesFileOf, writeCertificates } from "../../agent/ingress/certificates.ts";
import { readQuestion } from "../../agent/ingress/dns.ts";
import { holderOf } from "../../agent/ingress/holder.ts";
import { RouteTable } from "../../agent/ingress/table.ts";
import { peersAddress } from "../../agent/ingress/hop.ts";
import { peersFileOf } from "../../agent/ingress/peers.ts";
import { bundleNode } from "../../scripts/lib/bundle.ts";
import { freePort } from "../../scripts/lib/state.ts";
import { get, TestResponder } from "../support/ingress.ts";
import { newAuthority, peersOf, writePeers } from "../support/peers.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const target = (address: string, port = 3000): Target => ({ containerId: `c-${address}`, address, port });

// Each starts programs, also on a busy machine.
vi.setConfig({ testTimeout: 150_000, hookTimeout: 150_000 });

describe("the responder", () => {
  let responder: TestResponder;
  let routes: Ingress;

  beforeAll(async () => {
    responder = await TestResponder.start();
  });
  beforeEach(() => {
    routes = responder.openRoutes();
  });
  afterAll(() => responder.stop());

  it("leads a name to its container as soon as the call that routed it returns", async () => {
    for (let last = 1; last <= 20; last++) {
      await routes.route("site_1", ["shop.localhost", "www.example.com"], [target(`10.0.0.${last}`)]);
      expect(await responder.leadsTo("shop.localhost")).toBe(`10.0.0.${last}:3000`);
    }
    expect(await responder.leadsTo("WWW.Example.COM")).toBe("10.0.0.20:3000");
    expect(routes.current("site_1")).toEqual([target("10.0.0.20")]);
  });

  it("waits for nothing where all requests see it already, and for the responder where that is not known", async () => {
    const again = (one: Ingress) => one.route("site_s", ["same.localhost"], [target("10.0.5.1")]);
    await routes.routeOnProbation("site_s", ["same.localhost"], [target("10.0.5.1")]);
    await routes.settle("site_s");
    await responder.kill();
    await again(routes);
    await expect(again(responder.openRoutes([], 200))).rejects.toThrow(/responder does not answer/);
    await responder.run();
    await again(responder.openRoutes());
  });

  it("leads a name to the host where its site is now, and to the copy here while that one takes nothing", async () => {
    const authority = await newAuthority();
    const [here, there, port] = [responder, await TestResponder.start(), await freePort()];
    const inner = createServer().listen(there.statusPort, peersAddress);
    const name = "moved.localhost";
    const forward = { hostnames: [name], hostId: "host_b", address: "127.0.0.1", port };
    await routes.route("site_m", [name], [target("10.0.4.1")]);
    await routes.rule("site_m", { headers: { "X-Own": "of before" } });
    await routes.rule("site_m", {});
    await routes.forward({ site_m: forward });
    expect(await here.leadsTo(name)).toBe("10.0.4.1:3000");
    writePeers(peersFileOf(here.file), await peersOf(authority, "host_a", port, { sites: ["site_m"] }));
    writePeers(peersFileOf(there.file), await peersOf(authority, "host_b", port, { from: ["host_a"] }));
    await vi.waitUntil(async () => (await here.leadsTo(name)).startsWith("127.0.0.1:"), 60_000);
    // What another host passes on goes no further.
    expect(await here.leadsTo(name, "pup")).toBe("10.0.4.1:3000");
    await routes.route("site_o", ["neighbour.localhost"], [target("10.0.4.3")]);
    expect(await here.leadsTo("neighbour.localhost", "pup")).toBe(`127.0.0.1:${here.statusPort}`);
    // It decides by its own rules.
    await routes.rule("site_m", { headers: { "X-Own": "of here" } });
    expect(await here.leadsTo(name)).toMatch(/^127\.0\.0\.1:/);
    expect(await here.leadsTo(name, "pws")).toMatch(/^127\.0\.0\.2:/);

    await there.kill();
    await vi.waitUntil(async () => (await here.leadsTo(name, "ws")).startsWith("127.0.0.2:"), 60_000);
    await there.run();
    await vi.waitUntil(async () => !(await here.leadsTo(name, "ws")).startsWith("127.0.0.2:"), 60_000);
    // Another agent knows it too, and a site that is back here is passed on no more.
    await here.openRoutes().route("site_m", [name], [target("10.0.4.2")]);
    await here.openRoutes().rule("site_m", {});
    expect(await here.leadsTo(name)).toBe("10.0.4.2:3000");
    routes = here.openRoutes();
    await routes.forward({ site_m: forward });
    await vi.waitUntil(async () => (await here.leadsTo(name)).startsWith("127.0.0.1:"), 60_000);
    await routes.unroute("site_m");
    expect(await here.leadsTo(name)).toBe(`127.0.0.1:${here.statusPort}`);
    inner.close();
    await there.stop();
  }, 240_000);

  it("leads a name back to what it led to before a probation that is not passed, also after the agent has ended", async () => {
    const [one, two, three] = [1, 2, 3].map((last) => target(`10.0.1.${last}`)) as [Target, Target, Target];
    const names = ["tried.localhost"];
    await routes.route("site_t", names, [one]);
    expect(routes.fallback("site_t")).toBeNull();
    await routes.routeOnProbation("site_t", names, [two]);
    expect(await responder.leadsTo("tried.localhost")).toBe("10.0.1.2:3000");
    routes = responder.openRoutes();
    // Another attempt: what has passed no probation is nothing to go back to.
    await routes.routeOnProbation("site_t", names, [three]);
    expect(routes.fallback("site_t")).toEqual([one]);
    await routes.takeBack("site_t", [{ ...one, address: "10.0.1.9" }]);
    expect(await responder.leadsTo("tried.localhost")).toBe("10.0.1.9:3000");
    expect(routes.fallback("site_t")).toBeNull();

    await routes.routeOnProbation("site_t", names, [two]);
    await routes.settle("site_t");
    expect([routes.fallback("site_t"), routes.current("site_t")]).toEqual([null, [two]]);
    await routes.takeBack("site_t", [one]);
    expect(routes.current("site_t")).toEqual([two]);
  });

  it("leads a name back to the page, or to nothing, that it led to before a probation that is not passed", async () => {
    const notice = { reason: "suspended", payUrl: null } as const;
    await routes.park("site_p", ["parked.localhost"], notice);
    await routes.routeOnProbation("site_p", ["parked.localhost"], [target("10.0.2.1")]);
    await routes.routeOnProbation("site_n", ["new.localhost"], [target("10.0.2.2")]);
    for (const site of ["site_p", "site_n"]) await routes.takeBack(site, []);
    expect([routes.current("site_p"), routes.current("site_n")]).toEqual(["parked", null]);
    const { text } = await get(responder.statusPort, "parked.localhost");
    expect(text).toContain("suspended");
    // Its account may be what is suspended: nobody is told to pay where nothing is due.
    expect(text).not.toMatch(/term has ended|[Pp]ay/);
  });

  it("leads a name to what served before, where what is on probation is taken out of service as it keeps exiting", async () => {
    const [one, two] = [target("10.0.3.1"), target("10.0.3.2")];
    await routes.route("site_w", ["crashing.localhost"], [one]);
    await routes.routeOnProbation("site_w", ["crashing.localhost"], [two]);
    await routes.withdraw("site_w", two.containerId);
    expect(await responder.leadsTo("crashing.localhost")).toBe("10.0.3.1:3000");
    await routes.withdraw("site_w", one.containerId);
    expect(routes.current("site_w")).toBe("parked");
  });

  it("leads a name to all of its replicas but those that do not run, or take no connection", async () => {
    const servers = await Promise.all(
      [1, 2].map(async () => {
        const server = createServer((socket) => socket.destroy()).listen(0, "127.0.0.1");
        await once(server, "listening");
        return { server, port: (server.address() as AddressInfo).port };
      }),
    );
    const [one, two] = servers.map(({ port }) => ({ ...target("127.0.0.1", port), containerId: `c${port}` }));
    if (!one || !two) throw new Error("no servers");
    const names = ["many.localhost"];
    const leadsTo = (...places: Target[]) =>
      places.map(({ address, port }) => `${address}:${port}`).toSorted();
    await routes.route("site_r", names, [one, two]);
    expect(routes.current("site_r")).toEqual([one, two]);
    expect(await responder.leadsToAll("many.localhost")).toEqual(leadsTo(one, two));
    await routes.readdress([{ ...one, down: true }]);
    expect(await responder.leadsToAll("many.localhost")).toEqual(leadsTo(two));
    await routes.readdress([{ ...two, down: true }]);
    const ask = () => responder.leadsToAll("many.localhost");
    await vi.waitFor(async () => expect(await ask()).toEqual(leadsTo(one, two)), { timeout: 60_000 });
    await routes.readdress([one, two]);

    servers[0]?.server.close();
    await vi.waitFor(async () => expect(await ask()).toEqual(leadsTo(two)), { timeout: 60_000 });
    servers[1]?.server.close();
    await vi.waitFor(async () => expect(await ask()).toEqual(leadsTo(one, two)), { timeout: 60_000 });

    await routes.withdraw("site_r", two.containerId);
    expect(routes.current("site_r")).toBe("parked");
  });

  it("leads no name to the address of a container that has ended, as another site's may have it by now", async () => {
    const [first, next] = [1, 2].map(() => spawn("sleep", ["3600"]));
    const at = (holder: string | undefined): Target => ({ ...target("10.0.6.1"), holder });
    const ask = () => responder.leadsTo("held.localhost");
    await routes.route("site_h", ["held.localhost"], [at(holderOf(first?.pid ?? 0))]);
    expect(await ask()).toBe("10.0.6.1:3000");
    first?.kill("SIGKILL");
    await vi.waitFor(async () => expect(await ask()).toBe(`127.0.0.9:${responder.statusPort}`), 60_000);
    await responder.kill();
    await responder.run();
    expect(await ask()).toBe(`127.0.0.9:${responder.statusPort}`);
    const holder = holderOf(next?.pid ?? 0);
    await routes.readdress([at(holder)]);
    expect(await ask()).toBe("10.0.6.1:3000");
    await routes.routeOnProbation("site_h", ["held.localhost"], [{ ...target("10.0.6.2"), holder }]);
    await routes.readdress([{ ...at(holder), address: "10.0.6.3" }]);
    await routes.withdraw("site_h", "c-10.0.6.2");
    expect(await ask()).toBe("10.0.6.3:3000");
    // A process of the same number after a reboot.
    await routes.readdress([at(holder?.replace(/ \S+$/, " another-boot"))]);
    expect(await ask()).toBe(`127.0.0.9:${responder.statusPort}`);
    next?.kill("SIGKILL");
  });

  it("is understood by a responder of before there were replicas", async () => {
    await routes.route("site_o", ["old.localhost"], [target("10.0.0.2"), target("10.0.0.3")]);
    const { sites } = JSON.parse(readFileSync(responder.file, "utf8")) as { sites: Record<string, object> };
    expect(sites["site_o"]).toMatchObject({ target: target("10.0.0.2") });
    await routes.unroute("site_o");
  });

  it("leads names of no site, of stopped sites and of removed ones to the page that says so", async () => {
    await routes.route("site_2", ["old.localhost"], [target("10.0.0.2")]);
    await routes.park("site_2", ["old.localhost"]);
    expect(routes.current("site_2")).toBe("parked");
    expect(await responder.leadsTo("old.localhost")).toBe(responder.statusPage);
    const stopped = await get(responder.statusPort, "old.localhost:8080");
    expect([stopped.status, stopped.text]).toEqual([503, expect.stringContaining("stopped")]);
    await routes.unroute("site_2");
    expect(routes.current("site_2")).toBeNull();
    for (const name of ["old.localhost", "nobody.localhost", "up.internal", "10.0.0.1"])
      expect(await responder.leadsTo(name)).toBe(responder.statusPage);
    expect((await get(responder.statusPort, "old.localhost")).status).toBe(404);
  });

  it("leads all names with one label in a wildcard's place to its site, except those of another site", async () => {
    await routes.route("site_5", ["five.localhost", "*.shop.example"], [target("10.0.0.5")]);
    await routes.route("site_6", ["own.shop.example"], [target("10.0.0.6")]);
    for (const [name, place] of [
      ["a.shop.example", "10.0.0.5:3000"],
      ["B.Shop.Example", "10.0.0.5:3000"],
      ["own.shop.example", "10.0.0.6:3000"],
      ["a.b.shop.example", responder.statusPage],
      ["shop.example", responder.statusPage],
      ["a_b.shop.example", responder.statusPage],
    ])
      expect([name, await responder.leadsTo(name ?? "")]).toEqual([name, place]);
    // No host name, though Caddy looks it up.
    expect((await get(responder.statusPort, "a_b.shop.example")).status).toBe(400);
    // The control plane obtains its certificate: Caddy would obtain one for each name that anybody thinks of.
    const mayObtain = async (name: string) =>
      (await get(responder.statusPort, "x", { path: `/.berth/certificate?domain=${name}` })).status;
    expect([await mayObtain("own.shop.example"), await mayObtain("a.shop.example")]).toEqual([200, 404]);
    expect(await mayObtain("*.shop.example")).toBe(404);
    // The rules of the wildcard's site are none of the other one's.
    await routes.rule("site_5", { headers: { "X-Of": "five" } });
    expect(await responder.leadsTo("a.shop.example")).toMatch(/^127\.0\.0\.2:/);
    expect(await responder.leadsTo("own.shop.example")).toBe("10.0.0.6:3000");
    await routes.rule("site_5", {});
    await routes.park("site_5", ["*.shop.example"], { reason: "suspended", payUrl: "https://pay.example/1" });
    expect((await get(responder.statusPort, "a.shop.example")).text).toContain("suspended");
  });

  it("lets a name's certificate be requested once in a while, always where the agent asks, and as often as it is loaded", async () => {
    const [name, obtained] = ["misled.example.com", "obtained.example.com"];
    await routes.route("site_m", [name, obtained], [target("10.0.0.7")]);
    const volume = temporaryFolder();
    const folder = join(volume, "ca", obtained);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, `${obtained}.key`), "KEY");
    writeFileSync(join(folder, `${obtained}.crt`), (await newAuthority()).certificate);
    writeCertificates(certificatesFileOf(responder.file), {
      addressKey: "x".repeat(40),
      certificates: [],
      awaited: null,
      place: { volume, folders: ["ca"] },
    });
    const ask = async (path: string, asked = name) =>
      (await get(responder.statusPort, "x", { path: `/.berth/${path}?domain=${asked}` })).status;
    expect(await ask("certificate")).toBe(200);
    await vi.waitUntil(async () => (await ask("certificate")) === 404, { timeout: 20_000, interval: 500 });
    await ask("certificate/wanted");
    expect([await ask("certificate"), await ask("certificate")]).toEqual([200, 200]);
    const loaded = [1, 2, 3].map(() => ask("certificate", obtained));
    expect(await Promise.all(loaded)).toEqual([200, 200, 200]);
    rmSync(certificatesFileOf(responder.file));
  });

  it("keeps two sites apart whose ids begin alike", async () => {
    await routes.route("s1", ["one.localhost"], [target("10.0.0.1")]);
    await routes.route("s10", ["ten.localhost"], [target("10.0.0.10")]);
    await routes.unroute("s1");
    expect(await responder.leadsTo("ten.localhost")).toBe("10.0.0.10:3000");
  });

  it("knows its routes after kill -9, and so does an agent that starts anew", async () => {
    await routes.route("site_3", ["kept.localhost"], [target("10.0.0.3")]);
    await responder.kill();
    await responder.run();
    expect(await responder.leadsTo("kept.localhost")).toBe("10.0.0.3:3000");
    expect(responder.openRoutes().current("site_3")).toEqual([target("10.0.0.3")]);
  });

  it("a route made while it is down is in force when the call returns", async () => {
    await responder.kill();
    const routed = routes.route("site_4", ["late.localhost"], [target("10.0.0.4")]);
    await responder.run();
    await routed;
    expect(await responder.leadsTo("late.localhost")).toBe("10.0.0.4:3000");
  });

  it("a change that it does not take, as it stays down, is none: also not once it is there again", async () => {
    await routes.route("site_9", ["nine.localhost"], [target("10.0.0.9")]);
    await responder.kill();
    const impatient = responder.openRoutes([], 50);
    for (const change of [
      () => impatient.route("site_9", ["nine.localhost"], [target("10.0.0.99")]),
      () => impatient.route("site_new", ["new.localhost"], [target("10.0.0.98")]),
      () => impatient.park("site_9", ["nine.localhost"]),
      () => impatient.unroute("site_9"),
    ])
      await expect(change()).rejects.toThrow("does not answer");
    expect([impatient.current("site_9"), impatient.current("site_new")]).toEqual([
      [target("10.0.0.9")],
      null,
    ]);
    await responder.run();
    expect(await responder.leadsTo("nine.localhost")).toBe("10.0.0.9:3000");
    expect(await responder.leadsTo("new.localhost")).toBe(responder.statusPage);
    await routes.unroute("site_9");
  });

  it("a removal that it does not take leaves the site its password, the names it was told of and the host it is on", async () => {
    const ofSite = () => {
      const { sites, rules, told, forwards } = RouteTable.parse(
        JSON.parse(readFileSync(responder.file, "utf8")),
      );
      return [sites, rules, told, forwards].map((part) => part?.["site_11"]);
    };
    const names = ["guarded.localhost"];
    const ingress = { basicAuth: { username: "ann", hash: `scrypt$16384$8$1$${"ab".repeat(16)}` } };
    await routes.route("site_11", names, [target("10.0.0.11")]);
    await routes.tell("site_11", { hostnames: names, ingress, readAtMs: 2000 });
    await routes.forward({ site_11: { hostnames: names, hostId: "host_b", address: "127.0.0.1", port: 1 } });
    const before = ofSite();
    await responder.kill();
    const impatient = responder.openRoutes([], 50);
    await expect(impatient.unroute("site_11")).rejects.toThrow("does not answer");
    expect(ofSite()).toEqual(before);

    // What it is told while the removal is not known to have failed is the newest.
    const removal = impatient.unroute("site_11");
    const told = impatient.tell("site_11", { hostnames: names, ingress: { maxBodyMb: 5 }, readAtMs: 3000 });
    await Promise.allSettled([removal, told]);
    expect(ofSite()).toMatchObject([before[0], { maxBodyMb: 5 }, { readAtMs: 3000 }, before[3]]);
    await responder.run();
    await routes.unroute("site_11");
  });

  it("goes on serving what it knows when the file is damaged or lost, and takes the next whole one", async () => {
    await routes.route("site_5", ["held.localhost"], [target("10.0.0.5")]);
    for (const damage of [
      "",
      "{",
      "[]",
      '{"version":1e9,"sites":{"a":{"hostnames":["held.localhost"],"target":{}}}}',
    ]) {
      writeFileSync(responder.file, damage);
      await get(responder.statusPort, "127.0.0.1", { path: "/.berth/version" });
      expect(await responder.leadsTo("held.localhost")).toBe("10.0.0.5:3000");
    }
    rmSync(responder.file);
    await get(responder.statusPort, "127.0.0.1", { path: "/.berth/version" });
    expect(await responder.leadsTo("held.localhost")).toBe("10.0.0.5:3000");
    await routes.route("site_5", ["held.localhost"], [target("10.0.0.55")]);
    expect(await responder.leadsTo("held.localhost")).toBe("10.0.0.55:3000");
  });

  it.each(["damaged", "lost"])(
    "goes on serving what an agent that finds the file %s does not know, until that is told anew",
    async (how) => {
      await routes.route("site_6", ["six.localhost"], [target("10.0.0.6")]);
      await routes.route("site_7", ["seven.localhost"], [target("10.0.0.7")]);
      if (how === "lost") rmSync(responder.file);
      else writeFileSync(responder.file, '{"version":2,"sites":{"site_6":{"hostnam');
      const next = responder.openRoutes(["site_6", "site_7", "site_8"]);
      expect([next.sites(), next.lost()]).toEqual([[], ["site_6", "site_7", "site_8"]]);
      if (how === "damaged") expect(readFileSync(`${responder.file}.damaged`, "utf8")).toContain('"hostnam');

      // One site is told; what was known of the other one is still so, for the agent after it as well.
      await next.route("site_6", ["six.localhost"], [target("10.0.0.66")]);
      await next.tell("site_7", { hostnames: ["other.localhost"] });
      expect(await responder.leadsTo("six.localhost")).toBe("10.0.0.66:3000");
      expect(await responder.leadsTo("seven.localhost")).toBe("10.0.0.7:3000");
      expect(responder.openRoutes(["site_7"]).lost()).toEqual(["site_7", "site_8"]);

      await next.park("site_7", ["seven.localhost"]);
      expect(await responder.leadsTo("seven.localhost")).toBe(responder.statusPage);
      await next.unroute("site_8");
      expect(next.lost()).toEqual([]);
    },
  );

  it("a job that was sent before names and rules changed does not bring back the former ones", async () => {
    const ruled = () =>
      RouteTable.parse(JSON.parse(readFileSync(responder.file, "utf8"))).rules?.["site_9"] ?? null;
    const sent = { hostnames: ["former.localhost"], readAtMs: 1000 };
    await routes.route("site_9", ["former.localhost"], [target("10.0.0.9")]);
    await routes.tell("site_9", { hostnames: ["now.localhost"], ingress: { maxBodyMb: 5 }, readAtMs: 2000 });
    expect(await responder.leadsTo("former.localhost")).toBe(responder.statusPage);
    // The agent was restarted meanwhile.
    routes = responder.openRoutes();
    await routes.rule("site_9", { maxBodyMb: 1 }, sent.readAtMs);
    await routes.tell("site_9", { ...sent, ingress: {} });
    expect(ruled()).toEqual({ maxBodyMb: 5 });
    expect(routes.newest("site_9", sent)).toEqual(["now.localhost"]);
    expect(routes.hostnames("site_9")).toEqual(["now.localhost"]);
    expect(routes.newest("site_9", { hostnames: ["later.localhost"], readAtMs: 3000 })).toEqual([
      "later.localhost",
    ]);
    await routes.rule("site_9", {}, 3000);
    expect(ruled()).toBeNull();
    await routes.unroute("site_9");
    expect(routes.newest("site_9", sent)).toEqual(["former.localhost"]);
  });

  it("names change also while the control plane's clock is set back, which was an hour ahead", async () => {
    const nowMs = Date.now();
    const ahead = { hostnames: ["ahead.localhost"], ingress: {}, readAtMs: nowMs + 3_600_000 };
    await routes.route("site_12", ["ahead.localhost"], [target("10.0.0.12")]);
    await routes.tell("site_12", ahead);
    await routes.tell("site_12", { hostnames: ["back.localhost"], ingress: {}, readAtMs: nowMs });
    expect(routes.hostnames("site_12")).toEqual(["back.localhost"]);
    expect(await responder.leadsTo("back.localhost")).toBe("10.0.0.12:3000");
    await routes.tell("site_12", { ...ahead, readAtMs: nowMs - 1 });
    expect(routes.hostnames("site_12")).toEqual(["back.localhost"]);
    await routes.unroute("site_12");
  });

  it("a site that is deployed for the first time has the names that it was told of meanwhile", async () => {
    await routes.tell("site_10", { hostnames: ["two.localhost"], ingress: {}, readAtMs: 2000 });
    expect(routes.sites()).not.toContain("site_10");
    expect(routes.newest("site_10", { hostnames: ["one.localhost"], readAtMs: 1000 })).toEqual([
      "two.localhost",
    ]);
    await routes.unroute("site_10");
  });

  it("a host without sites begins with an empty table, whatever the file was", async () => {
    writeFileSync(responder.file, "{");
    const next = responder.openRoutes();
    expect([next.sites(), next.lost()]).toEqual([[], []]);
  });

  it("tells its version to this host's agent only, never to a visitor", async () => {
    const ask = (headers = {}) =>
      get(responder.statusPort, "127.0.0.1", { path: "/.berth/version", headers });
    expect((await ask()).status).toBe(200);
    expect((await ask({ "X-Forwarded-For": "203.0.113.7" })).status).toBe(404);
  });

  it("takes no visitor for Caddy itself, however many headers he sends before the one that tells them apart", async () => {
    const many = Object.fromEntries(Array.from({ length: 1200 }, (_, index) => [`C${index}`, "1"]));
    const headers = { ...many, "X-Forwarded-For": "203.0.113.7" };
    for (const path of ["/.berth/version", "/.berth/decision"])
      expect((await get(responder.statusPort, "127.0.0.1", { path, headers })).status).toBe(404);
  });

  it("listens on loopback only", () => {
    const listening = (table: string) =>
      readFileSync(`/proc/${responder.processId}/net/${table}`, "utf8")
        .split("\n")
        .map((line) => line.trim().split(/\s+/)[1] ?? "")
        .filter((local) =>
          [responder.dnsPort, responder.statusPort].some((port) =>
            local.endsWith(`:${port.toString(16).toUpperCase().padStart(4, "0")}`),
          ),
        )
        .map((local) => local.split(":")[0]);
    expect(new Set([...listening("tcp"), ...listening("udp")])).toEqual(new Set(["0100007F"]));
    expect([...listening("tcp6"), ...listening("udp6")]).toEqual([]);
  });

  it("survives whatever comes in a packet", async () => {
    await routes.route("site_6", ["alive.localhost"], [target("10.0.0.6")]);
    const socket = createSocket("udp4");
    const query = Buffer.from("000101000001000000000000057465737401780275700869", "hex");
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.uint8Array({ maxLength: 600 }), cutUp(query)), async (bytes) => {
        await new Promise<void>((resolve, reject) =>
          socket.send(bytes, responder.dnsPort, "127.0.0.1", (error) => (error ? reject(error) : resolve())),
        );
      }),
    );
    socket.close();
    await once(socket, "close");
    expect(await responder.leadsTo("alive.localhost")).toBe("10.0.0.6:3000");
  });
});

/** A packet with a few bytes changed and an end cut off: closer to a real one than chance gets. */
const cutUp = (packet: Buffer) =>
  fc
    .tuple(
      fc.array(fc.tuple(fc.nat(packet.length - 1), fc.nat(255)), { maxLength: 4 }),
      fc.nat(packet.length),
    )
    .map(([changes, length]) => {
      const copy = Uint8Array.from(packet);
      for (const [at, byte] of changes) copy[at] = byte;
      return copy.subarray(0, length);
    });

describe("a responder whose file is replaced", () => {
  const folder = temporaryFolder();
  let program: string;
  let text: string;
  let responder: TestResponder;

  beforeAll(async () => {
    program = join(folder, "responder.mjs");
    await bundleNode("agent/ingress/responder.ts", program);
    // The bundler breaks lines wherever they are too long, also within a text.
    text = readFileSync(program, "utf8").replaceAll("\\\n", "");
    responder = await TestResponder.start(program);
  });
  afterAll(() => responder.stop());

  const title = async () =>
    /<title>(.*)<\/title>/.exec((await get(responder.statusPort, "nobody.localhost")).text)?.[1];
  function replaceBy(next: string): void {
    writeFileSync(`${program}.new`, next);
    renameSync(`${program}.new`, program);
  }
  const version = (name: string) => text.replace("There is no site here", name);

  it("goes on as the next version, in the same process, without leaving a question unanswered", async () => {
    const routes = responder.openRoutes();
    await routes.route("site_1", ["held.localhost"], [target("10.0.0.1")]);
    // What the next one cannot read, it has of the one before.
    rmSync(responder.file);
    const { processId } = responder;
    const over = new AbortController();
    let asked = 0;
    // A question that is lost is not asked again.
    const resolver = new Resolver({ timeout: 60_000, tries: 1 });
    resolver.setServers([`127.0.0.1:${responder.dnsPort}`]);
    const load = (async () => {
      for (; !over.signal.aborted; asked++) {
        const [service] = await resolver.resolveSrv("held.localhost.up.internal");
        expect(service).toMatchObject({ name: "h10-0-0-1.up.internal", port: 3000 });
        expect((await get(responder.statusPort, "nobody.localhost")).status).toBe(404);
      }
    })();
    // Its failure ends the waiting below.
    const failed = load.then(() => "The questions have ended");
    for (const name of ["The second version", "The third version"]) {
      replaceBy(version(name));
      const since = asked;
      const goesOn = vi.waitUntil(async () => (await title()) === name && asked > since + 10, {
        timeout: 90_000,
      });
      expect(await Promise.race([goesOn, failed])).toBe(true);
    }
    over.abort();
    await load;
    expect(responder.processId).toBe(processId);
    await routes.route("site_1", ["held.localhost"], [target("10.0.0.2")]);
    expect(await responder.leadsTo("held.localhost")).toBe("10.0.0.2:3000");
  }, 200_000);

  it("stays the version it is where the next one does not run", async () => {
    await responder.openRoutes().route("site_1", ["held.localhost"], [target("10.0.0.2")]);
    const before = await title();
    const marker = join(folder, "tried");
    const tries = `import { writeFileSync as note } from "node:fs"; note(${JSON.stringify(marker)}, "");`;
    replaceBy(`${tries} throw new Error("It needs another Node"); ${version("Never")}`);
    await vi.waitUntil(() => existsSync(marker), { timeout: 60_000 });
    expect(await title()).toBe(before);
    expect(await responder.leadsTo("held.localhost")).toBe("10.0.0.2:3000");
    replaceBy(version("The one after"));
    await vi.waitUntil(async () => (await title()) === "The one after", { timeout: 60_000 });
  });
});

it("a query is read whole or not at all", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 600 }), (bytes) => {
      const question = readQuestion(Buffer.from(bytes));
      if (question) expect(question.end).toBeLessThanOrEqual(bytes.length);
    }),
    { numRuns: 2000 },
  );
});

it("a table that is not of the agent's making is refused", () => {
  const accepts = (table: unknown) => RouteTable.safeParse(table).success;
  const target = { containerId: "c", address: "10.0.0.1", port: 80 };
  const route = { hostnames: ["a"], target };
  const of = (changed: unknown) => ({ version: 1, sites: { a: changed } });
  expect(accepts(of(route))).toBe(true);
  for (const bad of [{ ...route, hostnames: "a" }, { ...route, hostnames: [1] }, { hostnames: ["a"] }])
    expect(accepts(of(bad)), JSON.stringify(bad)).toBe(false);
  for (const part of [
    { port: 0 },
    { port: 65536 },
    { port: "80" },
    { address: "10.0.0.256" },
    { address: "::1" },
    { address: "evil.example" },
    { containerId: 1 },
  ])
    expect(accepts(of({ ...route, target: { ...target, ...part } })), JSON.stringify(part)).toBe(false);
  for (const bad of [null, [], { version: "1", sites: {} }, { version: 1 }]) expect(accepts(bad)).toBe(false);
});

it("two changes at once are both kept", async () => {
  const responder = await TestResponder.start();
  const routes = responder.openRoutes();
  await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      routes.route(`site_${index}`, [`s${index}.localhost`], [target(`10.0.1.${index}`)]),
    ),
  );
  for (let index = 0; index < 20; index++)
    expect(await responder.leadsTo(`s${index}.localhost`)).toBe(`10.0.1.${index}:3000`);
  await responder.stop();
});
