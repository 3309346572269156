import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, it, vi } from "vitest";
import { label } from "../../agent/docker/labels.ts";
import { accessLogVolume } from "../../agent/ingress/access-log.ts";
import type { Ingress } from "../../agent/ingress/ingress.ts";
import { AccessLog } from "../../agent/running/access-log.ts";
import { followRequests } from "../../agent/running/follow-requests.ts";
import { openRequestRecords, type RequestRecords } from "../../agent/running/request-records.ts";
import type { SiteRequest } from "../../protocol/api/requests.ts";
import { engine } from "../support/engine.ts";
import { startTestIngress, type TestIngress, TestResponder } from "../support/ingress.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const agentId = `test${randomBytes(6).toString("hex")}`;
const { signal } = new AbortController();

let port: number;
const folder = temporaryFolder();
let own: TestIngress;
let responder: TestResponder;
let routes: Ingress;
let server: http.Server;
let records: RequestRecords;

/** As an agent has it that starts now. */
function start(): AccessLog {
  records = openRequestRecords(join(folder, "requests.db"));
  return new AccessLog({ engine, ingress: routes, requests: records, agentId });
}
let accessLog: AccessLog;

const logFolder = async () => {
  const volumes = await engine.volumes({ [label.ingress]: agentId });
  return volumes.find(({ name }) => name === accessLogVolume(agentId))?.folder ?? "";
};
const totals = (siteId: string) => records.stats(siteId, "1h", Date.now()).totals;
const agent = new http.Agent({ keepAlive: true, maxSockets: 16 });

/** The id that the app was told last. */
let told = "";
/** Answers `/status/404` with that status, after reading the body; ten bytes. `/endless` begins an answer, and `/broken` breaks it off. */
const answer: http.RequestListener = (request, response) => {
  told = String(request.headers["x-request-id"]);
  if (request.url === "/endless" || request.url === "/broken") {
    response.write("0123456789");
    if (request.url === "/broken") setTimeout(() => response.destroy(), 300);
    return;
  }
  const status = Number(/\/status\/(\d+)/.exec(request.url ?? "")?.[1] ?? 200);
  request.resume().on("end", () => response.writeHead(status).end("0123456789"));
};

const ask = (
  host: string,
  path: string,
  options: { method?: string; headers?: Record<string, string> } = {},
  body = "",
) =>
  new Promise<number>((resolve, reject) => {
    http
      .request({
        host: "127.0.0.1",
        port,
        path,
        agent,
        method: options.method,
        headers: { ...options.headers, Host: host },
      })
      .on("response", (response) => response.resume().on("end", () => resolve(response.statusCode ?? 0)))
      .on("error", reject)
      .end(body);
  });

/** So many requests, sixteen at once. @returns how many were answered with each class of statuses */
async function load(
  host: string,
  count: number,
  path: (index: number) => string,
): Promise<Record<string, number>> {
  const classes: Record<string, number> = {};
  let next = 0;
  const client = async () => {
    while (next < count) {
      const of = `${Math.floor((await ask(host, path(next++))) / 100)}xx`;
      classes[of] = (classes[of] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: 16 }, client));
  return classes;
}

beforeAll(async () => {
  own = await startTestIngress(agentId);
  ({ port, responder } = own);
  routes = responder.openRoutes();
  server = http.createServer({ maxHeaderSize: 65_536 }, answer).listen(0, "127.0.0.1");
  await once(server, "listening");
  const target = {
    containerId: "one",
    address: "127.0.0.1",
    port: (server.address() as AddressInfo).port,
    deploymentId: "dep_001m80000000000000000000000",
  };
  await routes.route("site_1", ["shop.localhost", "Other.localhost"], [target]);
  await routes.route("site_2", ["blog.localhost"], [target]);
  await routes.park("site_3", ["stopped.localhost"]);
  accessLog = start();
});

beforeEach(async () => {
  await accessLog.look(signal);
});

afterAll(async () => {
  agent.destroy();
  server.close();
  records.close();
  await own.stop();
});

it("a request is told with what a visitor sent and got, its secrets masked, and its headers left out", async () => {
  const headers = {
    "User-Agent": "browser\u0009one",
    Referer: "https://ada:pw@search.example/find?token=1",
    Cookie: "session=canary-1",
    Authorization: "Bearer canary-2",
    "X-Own-Secret": "canary-3",
    "X-Request-Id": "canary-5",
  };
  await ask(
    "Other.LOCALHOST:8080",
    "/orders%20all?page=2&access_token=canary-4",
    { method: "POST", headers },
    "body",
  );
  await accessLog.look(signal);
  const [one] = records.before("site_1", {}, null, 1);
  expect(one).toMatchObject({
    method: "POST",
    host: "other.localhost",
    path: "/orders%20all",
    query: "page=2&access_token=•••",
    status: 200,
    bytesIn: 4,
    bytesOut: 10,
    address: "127.0.0.1",
    referrer: "https://search.example/find",
    userAgent: "browser one",
    deploymentId: "dep_001m80000000000000000000000",
    replica: null,
    represents: 1,
  });
  expect(one?.requestId).toBe(told);
  expect(Math.abs(Date.parse(one?.at ?? "") - Date.now())).toBeLessThan(10_000);
  expect(one?.durationMs).toBeGreaterThan(0);
  expect(JSON.stringify(records.stats("site_1", "1h", Date.now())) + JSON.stringify(one)).not.toMatch(
    /canary/,
  );
});

it("statistics equal the load's own counts, per site and status, and the agent may restart meanwhile", async () => {
  const before = [totals("site_1").requests, totals("site_2").requests];
  const path = (index: number) =>
    index % 10 === 0 ? "/status/404" : index % 25 === 1 ? "/status/500" : `/${index % 3}`;
  const loading = Promise.all([
    load("shop.localhost", 4000, path),
    load("blog.localhost", 1000, () => "/blog"),
  ]);
  for (let restart = 0; restart < 5; restart++) {
    const known = totals("site_1").requests;
    await vi.waitUntil(async () => {
      await accessLog.look(signal);
      return totals("site_1").requests > known;
    }, 20_000);
    // Killed: nothing is closed or written any more.
    accessLog = start();
  }
  const [shop, blog] = await loading;
  await vi.waitUntil(async () => {
    await accessLog.look(signal);
    return (
      totals("site_1").requests >= (before[0] ?? 0) + 4000 &&
      totals("site_2").requests >= (before[1] ?? 0) + 1000
    );
  }, 10_000);
  const { statuses, requests } = totals("site_1");
  expect(requests).toBe((before[0] ?? 0) + 4000);
  expect({ "4xx": statuses["4xx"], "5xx": statuses["5xx"] }).toEqual({
    "4xx": shop["4xx"],
    "5xx": shop["5xx"],
  });
  expect(totals("site_2")).toMatchObject({
    requests: (before[1] ?? 0) + 1000,
    statuses: { "2xx": blog["2xx"] },
  });
  expect(records.stats("site_2", "1h", Date.now()).top.paths).toEqual([{ value: "/blog", requests: 1000 }]);
});

it("reads on when Caddy begins another file, and leaves one of them on the disk", async () => {
  const before = totals("site_2").requests;
  const long = `/long?q=${"x y ".repeat(6000).replaceAll(" ", "+")}`;
  await load("blog.localhost", 1500, () => long);
  const rolled = async () => readdirSync(await logFolder()).filter((name) => name !== "requests.log");
  expect((await rolled()).length).toBeGreaterThanOrEqual(1);
  await vi.waitUntil(async () => {
    await accessLog.look(signal);
    return totals("site_2").requests >= before + 1500;
  }, 10_000);
  expect(totals("site_2").requests).toBe(before + 1500);
  expect(await rolled()).toEqual([]);
});

it.each(["/endless", "/broken"])(
  "an answer that its visitor or the app breaks off counts as any other, and as long as it took (%s)",
  async (path) => {
    const known = records.newest();
    await new Promise<void>((resolve, reject) => {
      const request = http.get(
        { host: "127.0.0.1", port, path, headers: { Host: "shop.localhost" }, agent: false },
        (response) => {
          if (path === "/endless") setTimeout(() => request.destroy(), 300);
          response.resume().on("error", () => resolve());
        },
      );
      request.on("error", reject);
    });
    await vi.waitUntil(async () => {
      await accessLog.look(signal);
      return records.newest() > known;
    }, 10_000);
    const [one] = records.before("site_1", {}, null, 1);
    expect(one).toMatchObject({ path, status: 200, bytesOut: 10, requestId: told });
    expect(one?.durationMs).toBeGreaterThan(250);
    expect(one?.durationMs).toBeLessThan(10_000);
  },
);

it("the page of a stopped site counts as its own, and names of no site are nobody's", async () => {
  const known = records.newest();
  expect(await ask("stopped.localhost", "/")).toBe(503);
  expect(await ask("nobody.localhost", "/")).toBe(404);
  await vi.waitUntil(async () => {
    await accessLog.look(signal);
    return records.newest() > known;
  }, 10_000);
  expect(records.before("site_3", {}, null, 10)).toMatchObject([{ status: 503 }]);
  expect(records.newest()).toBe(known + 1);
});

it("who follows hears of each new request that is asked for, once, also after a cut", async () => {
  const heard: SiteRequest[] = [];
  const follow = (after: number | null) => {
    const stopping = new AbortController();
    const question = { siteId: "site_1", filters: { status: "404" }, after };
    void followRequests(records, question, stopping.signal, (found) => heard.push(...found));
    return stopping;
  };
  const until = (count: number) =>
    vi.waitUntil(async () => {
      await accessLog.look(signal);
      return heard.length >= count;
    }, 10_000);
  const first = follow(null);
  await ask("shop.localhost", "/status/404?n=1");
  await ask("shop.localhost", "/status/200");
  await until(1);
  first.abort();
  await ask("shop.localhost", "/status/404?n=2");
  const known = records.newest();
  await vi.waitUntil(async () => {
    await accessLog.look(signal);
    return records.newest() > known;
  }, 10_000);
  const second = follow(Number(heard.at(-1)?.id));
  await ask("shop.localhost", "/status/404?n=3");
  await until(3);
  second.abort();
  expect(heard.map(({ query }) => query)).toEqual(["n=1", "n=2", "n=3"]);
});
