import { expect, it } from "vitest";
import type { Answer, ProjectFile } from "../../client/index.ts";
import { nameFrom } from "../../cli/commands/init.ts";
import { fileOf, isRemoval, linkInTheWay, planOf, secretsOf, type Actual } from "../../cli/project/plan.ts";
import { planText } from "../../cli/project/text.ts";
import { ProjectFile as schema } from "../../protocol/api/project-file.ts";

type Site = Answer<"listSites">["data"][number];

const bare = {
  id: "site_1",
  name: "shop",
  status: "RUNNING",
  deployType: "github",
  githubUrl: "github.com/acme/shop",
  branch: null,
  port: 3000,
  buildCommand: null,
  startCommand: null,
  releaseCommand: null,
  installCommand: null,
  rootDir: null,
  dockerfilePath: null,
  builder: null,
  outputDir: null,
  singlePage: null,
  languageVersion: null,
  startTimeoutSeconds: null,
  healthCheckPath: null,
  image: null,
  replicas: 1,
  volumes: [],
  lifecycle: {},
  domains: [],
  envVariables: [],
} as unknown as Site;

const full: Actual = {
  site: {
    ...bare,
    branch: "next",
    rootDir: "apps/web",
    startCommand: "npm start",
    singlePage: false,
    replicas: 2,
    volumes: [{ name: "data", mountPath: "/data" }],
    lifecycle: { restartPolicy: "on-failure" },
    domains: [{ domain: "xn--bcher-kva.example", displayName: "bücher.example" }] as Site["domains"],
    envVariables: [
      { key: "GREETING", value: "hello", encrypted: false, scope: "both" },
      { key: "TOKEN", value: null, encrypted: true, scope: "both" },
      { key: "DATABASE_URL", value: null, encrypted: true, scope: "both" },
    ],
  },
  databases: [
    {
      id: "db_2",
      name: "orders",
      type: "mysql",
      links: [{ siteId: "site_2", variable: "MAIN_URL" }],
    } as Actual["databases"][number],
    {
      id: "db_1",
      name: "main",
      type: "postgresql",
      links: [{ siteId: "site_1", variable: "DATABASE_URL" }],
    } as Actual["databases"][number],
  ],
  schedules: [
    {
      id: "sch_1",
      name: "nightly",
      cron: "0 3 * * *",
      command: "npm run nightly",
      timeoutSeconds: 600,
      enabled: true,
    } as Actual["schedules"][number],
  ],
};
const nothing: Actual = { site: null, databases: [], schedules: [] };

it("the file of a site is valid, holds no secret, and changes nothing", () => {
  const file = fileOf(full.site as Site, full);
  expect(schema.parse(file)).toEqual(file);
  expect(JSON.stringify(file)).not.toContain("TOKEN");
  expect(planOf(file, full)).toEqual([]);
});

it("what a file does not name is left as it is", () => {
  expect(planOf({ name: "shop" }, full)).toEqual([]);
  expect(planOf({ name: "shop", settings: { port: 3000 }, source: {} }, full)).toEqual([]);
});

it("each difference is one step, in the order in which they have to be taken", () => {
  const file: ProjectFile = schema.parse({
    name: "shop",
    source: { branch: "main" },
    settings: { port: 8080, startCommand: null, volumes: [{ name: "data", mountPath: "/srv/data" }] },
    variables: { GREETING: "good morning", COLOUR: "red" },
    databases: [
      { name: "orders", type: "mysql", variable: "ORDERS_URL" },
      { name: "cache", type: "redis" },
    ],
    domains: ["BÜCHER.example", "shop.example"],
    schedules: [{ name: "nightly", cron: "0 4 * * *", command: "npm run nightly" }],
  });
  expect(planOf(file, full).map(({ kind, ...step }) => [kind, JSON.stringify(step)])).toEqual([
    ["setting", '{"name":"branch","before":"next","after":"main"}'],
    ["setting", '{"name":"port","before":3000,"after":8080}'],
    ["setting", '{"name":"startCommand","before":"npm start","after":null}'],
    expect.arrayContaining(["setting"]),
    ["variable", '{"name":"GREETING","before":"hello","after":"good morning"}'],
    ["variable", '{"name":"COLOUR","before":null,"after":"red"}'],
    expect.arrayContaining(["linkDatabase"]),
    expect.arrayContaining(["createDatabase"]),
    ["linkDatabase", '{"database":{"name":"cache","type":"redis"},"variable":"REDIS_URL"}'],
    ["domain", '{"name":"shop.example"}'],
    expect.arrayContaining(["changeSchedule"]),
  ]);
});

it("what the lists of a file do not have is a removal, which is never a secret or a database's variable", () => {
  const steps = planOf({ name: "shop", variables: {}, domains: [], databases: [], schedules: [] }, full);
  expect(steps.map(({ kind }) => kind)).toEqual(["removeVariable", "removeDomain", "removeSchedule"]);
  expect(steps.every(isRemoval)).toBe(true);
  expect(planText(steps, false)).toContain("kept");
  expect(planText(steps, true)).toMatch(/^- variable GREETING$/m);
});

it("a new site is created with its settings, so that they are no steps of their own", () => {
  const file = schema.parse({
    name: "shop",
    settings: { port: 80 },
    variables: { A: "1" },
    domains: ["a.example"],
  });
  expect(planOf(file, nothing).map(({ kind }) => kind)).toEqual(["createSite", "variable", "domain"]);
});

it("a variable that is a secret on the site does not belong into the file", () => {
  expect(secretsOf({ name: "shop", variables: { TOKEN: "x", GREETING: "y" } }, full)).toEqual(["TOKEN"]);
});

it.each([
  ["main", "MAIN_URL", "a database that the site has under another variable"],
  ["orders", "DATABASE_URL", "a variable under which the site has another database"],
])("%s as %s: %s is told before anything is changed", (name, variable) => {
  const file: ProjectFile = { name: "shop", databases: [{ name, type: "postgresql", variable }] };
  expect(linkInTheWay(file, full)).toEqual({
    wanted: { name, variable },
    has: { name: "main", variable: "DATABASE_URL" },
  });
  expect(linkInTheWay(file, nothing)).toBe(undefined);
});

it("links that are as the file wants them, and those of other sites, are in nobody's way", () => {
  const databases: ProjectFile["databases"] = [
    { name: "main", type: "postgresql" },
    { name: "orders", type: "mysql", variable: "ORDERS_URL" },
  ];
  expect(linkInTheWay({ name: "shop", databases }, full)).toBe(undefined);
});

it.each([
  ["an unknown field", { name: "shop", prot: 80 }],
  ["an unknown setting", { name: "shop", settings: { gitToken: "x" } }],
  ["no name", {}],
  ["an image and a repository", { name: "shop", source: { image: "nginx", repository: "github.com/a/b" } }],
  ["an address with a scheme", { name: "shop", source: { repository: "https://github.com/a/b" } }],
  ["a variable that is no text", { name: "shop", variables: { A: 1 } }],
  ["a schedule that is none", { name: "shop", schedules: [{ name: "n", cron: "often", command: "x" }] }],
])("a file with %s is refused", (_, file) => expect(schema.safeParse(file).success).toBe(false));

it("text of others in a plan cannot rewrite the terminal", () => {
  const steps = planOf({ name: "shop", variables: { A: "\u001b[2Jgone" } }, full);
  expect(planText(steps, false)).not.toContain("\u001b[2J");
});

it.each([
  ["acme/My Shop", "acme-my-shop"],
  ["--", "site"],
  ["ünder_score.git", "nder-score-git"],
])("the name from %s is %s", (text, name) => expect(nameFrom(text)).toBe(name));
