import { execFileSync } from "node:child_process";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Site, SiteCreated } from "../../protocol/api/sites.ts";
import type { ToolName } from "../../protocol/api/tools.ts";
import { startModel, use } from "./scripted-chat.ts";
import { api, launch, leftovers, pay, remove, Repository, request, settled, site, until } from "./service.ts";

/** Says what its address asks for: a variable, which process it is, or its version. */
const talker = (version: string) => `
const id = require("node:crypto").randomUUID();
require("node:http").createServer((q, s) => {
  const [, what, name] = q.url.split("/");
  const answers = { env: () => process.env[name] ?? "unset", id: () => id };
  s.end(answers[what]?.() ?? "version ${version}");
}).listen(process.env.PORT);`;
const Dockerfile = `FROM node:24-bookworm-slim\nWORKDIR /app\nCOPY server.js .\nUSER node\nCMD ["node", "server.js"]\n`;

const docker = (...args: string[]) => execFileSync("docker", args, { encoding: "utf8" }).trim();
const containersOf = (id: string) =>
  docker("ps", "--quiet", "--filter", `label=berth.site=${id}`).split("\n").filter(Boolean);

let takeModelAway: () => Promise<void>;
let repository: Repository;
let shop: Site;
const answer = (path = "/") => request(shop.url + path);
const says = async (path: string, text: string) =>
  until(
    () => answer(path),
    (got) => got.text === text,
  );
const status = async (id: string, wanted: string) =>
  until(
    () => site(id),
    (now) => now.status === wanted,
  );

beforeAll(async () => {
  takeModelAway = await startModel();
  repository = new Repository({ Dockerfile, "server.js": talker("one") });
  shop = await launch({ githubUrl: repository.address });
  expect([shop.status, shop.latestDeployment?.error]).toEqual(["RUNNING", null]);
});
afterAll(async () => {
  await remove(shop.id);
  await takeModelAway();
});

type Row = [tool: ToolName, effect: string, test: () => Promise<void>];

const ofSites: Row[] = [
  [
    "set_env_vars",
    "the container has a variable after restart_site, and not before",
    async () => {
      await use("set_env_vars", { site: shop.name, entries: [{ key: "COLOUR", value: "blue" }] });
      expect((await answer("/env/COLOUR")).text).toBe("unset");
      await use("restart_site", { site: shop.name });
      await says("/env/COLOUR", "blue");
    },
  ],
  [
    "deploy_site",
    "visitors are answered by the newest commit",
    async () => {
      repository.commit({ "server.js": talker("two") }, "Second");
      await use("deploy_site", { site: shop.name });
      await says("/", "version two");
      await settled(shop.id);
    },
  ],
  [
    "scale_site",
    "as many containers as asked for answer",
    async () => {
      const { result } = await use("scale_site", { site: shop.name, replicas: 2 });
      expect(result).toMatchObject({ replicas: 2, applied: "now" });
      await until(
        () => containersOf(shop.id).length,
        (count) => count === 2,
      );
      const found = new Set<string>();
      await until(
        async () => found.add((await answer("/id")).text).size,
        (count) => count === 2,
      );
      await use("scale_site", { site: shop.name, replicas: 1 });
      await until(
        () => containersOf(shop.id).length,
        (count) => count === 1,
      );
    },
  ],
  [
    "stop_site",
    "no container runs and visitors are answered 503, until start_site",
    async () => {
      const unchanged = async () => expect((await answer()).text).toBe("version two");
      await use("stop_site", { site: shop.name }, { unchanged });
      await status(shop.id, "STOPPED");
      expect([(await answer()).status, containersOf(shop.id)]).toEqual([503, []]);
      await use("start_site", { site: shop.name });
      await says("/", "version two");
    },
  ],
  [
    "create_site",
    "its address answers once it is paid, and after delete_site nothing of it is left",
    async () => {
      const name = `other-${process.pid}`;
      const { result } = await use("create_site", {
        name,
        deployType: "github",
        githubUrl: repository.address,
        port: 3000,
      });
      const { siteId, invoiceToken } = result as SiteCreated;
      await pay(invoiceToken);
      const { url } = await settled(siteId);
      expect((await request(url)).text).toBe("version two");
      await use("delete_site", { site: name });
      await until(
        async () => (await api("GET", `/sites/${siteId}`)).status,
        (gone) => gone === 404,
      );
      expect(leftovers(siteId)).toEqual([]);
    },
  ],
];

describe("what the assistant's tools do to sites", () => {
  it.each(ofSites)("%s: %s", (_tool, _effect, test) => test());
});
