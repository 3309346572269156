import { beforeAll, expect, it } from "vitest";
import { operations } from "../../protocol/api/operations.ts";
import type { SourceInspection } from "../../protocol/api/sources.ts";
import { api, call, operator, operatorCookie, readyAgent, site, siteUrl, uniqueName } from "./service.ts";

let cookie = "";
beforeAll(async () => {
  cookie = await operatorCookie();
});

const path = "/sites/new";
const show = async () => {
  const response = await call(path, { headers: { Cookie: cookie, Accept: "text/html" } });
  return { status: response.status, text: await response.text() };
};
const send = async (fields: Record<string, string>) => {
  const response = await call(path, {
    method: "POST",
    redirect: "manual",
    headers: { Origin: siteUrl, Cookie: cookie, Accept: "text/html" },
    body: new URLSearchParams({ form: "create", deployType: "github", ...fields }),
  });
  return {
    status: response.status,
    location: response.headers.get("Location") ?? "",
    text: await response.text(),
  };
};
const siteNamed = async (name: string) => {
  const { data } = (
    await api<{ data: { id: string; name: string }[] }>(await operator(), "GET", "/sites?limit=100")
  ).body;
  return data.find((one) => one.name === name);
};

/** Answers the next question about a repository. */
async function answer(host: Awaited<ReturnType<typeof readyAgent>>, found: Partial<SourceInspection> = {}) {
  const { requestId, question } = await host.next("ask");
  const said = { ...operations.inspectSource.examples.answer, ...found } as SourceInspection;
  host.send({ type: "answer", requestId, answer: { kind: "source", found: said }, last: true });
  return question;
}

it("is for who is signed in, and comes back to it", async () => {
  const answered = await call(path, { redirect: "manual" });
  expect([answered.status, answered.headers.get("Location")]).toEqual([
    303,
    `/sign-in?next=${encodeURIComponent(path)}`,
  ]);
  const { text } = await show();
  for (const block of ["1. Source", "2. App", "3. Plan", "4. Variables", "To pay now"])
    expect(text).toContain(block);
});

it("checks a repository before it is paid for, prefills what was found, and never shows the token", async () => {
  const host = await readyAgent();
  const checking = send({
    check: "true",
    githubUrl: "https://git.invalid/owner/Some.Repo/",
    name: "",
    port: "3000",
    gitToken: "secret-token",
    variables: "A=1\r\nB=2",
  });
  const question = await answer(host, { port: 8080, startCommand: "npm run <b>" });
  expect(question).toMatchObject({
    source: { address: "git.invalid/owner/Some.Repo", branch: null, token: "secret-token" },
  });
  const { status, text } = await checking;
  expect(status).toBe(200);
  for (const shown of [
    "Express",
    "npm run &lt;b&gt;",
    'value="8080"',
    'value="some-repo"',
    "DATABASE_URL",
    "A=1\nB=2",
  ])
    expect(text).toContain(shown);
  expect(text).not.toContain("secret-token");
  expect(text).toMatch(/<details class="more" open=""><summary>A private repository<[^]*Type it again/);
  host.close();
});

it("does not create what a host says cannot be built, unless that is what is wanted", async () => {
  const host = await readyAgent();
  const name = uniqueName("unbuildable");
  const fields = { githubUrl: "git.invalid/owner/repo", name };
  const creating = send(fields);
  await answer(host, { builder: null, problem: "Found Cargo.toml: add a Dockerfile, or set rootDir." });
  const { status, text } = await creating;
  expect(status).toBe(200);
  expect(text).toContain("Found Cargo.toml: add a Dockerfile, or set “Folder of the app”.");
  expect(text).toContain('name="anyway"');
  expect(text).toContain(`value="${name}"`);
  expect(await siteNamed(name)).toBeUndefined();
  const forced = await send({ ...fields, anyway: "true" });
  expect(forced.location).toMatch(/^\/invoice\/inv_/);
  expect(await siteNamed(name)).toBeDefined();
  host.close();
});

it("leads to the invoice of a site with its settings and variables; an address may be pasted as browsers show it", async () => {
  const host = await readyAgent();
  const name = uniqueName("from-a-form");
  const creating = send({
    githubUrl: "https://git.invalid/owner/repo/?tab=readme#top",
    name,
    port: "4000",
    billingTerm: "3",
    branch: "",
    variables: "PLAIN='two words'\n# a comment\nOTHER=1",
    encrypted: "true",
  });
  await answer(host);
  const { status, location } = await creating;
  expect([status, location]).toEqual([303, expect.stringMatching(/^\/invoice\/inv_/)]);
  const made = await siteNamed(name);
  expect(await site(await operator(), made?.id ?? "")).toMatchObject({
    githubUrl: "git.invalid/owner/repo",
    port: 4000,
    billingTerm: 3,
    branch: null,
    envVariables: [
      { key: "PLAIN", value: null, encrypted: true, scope: "both" },
      { key: "OTHER", value: null, encrypted: true, scope: "both" },
    ],
  });
  host.close();
});

it("an address of half a megabyte, as strangers send it, takes no time to speak of", async () => {
  const started = performance.now();
  const { status } = await send({ githubUrl: `${"?".repeat(300_000)}\nx`, name: uniqueName("long") });
  expect(status).toBe(400);
  expect(performance.now() - started).toBeLessThan(5_000);
});

it("creates an image's site without asking any host", async () => {
  const name = uniqueName("image");
  const { location } = await send({
    deployType: "image",
    image: "registry.invalid/app:1",
    name,
    githubUrl: "",
  });
  expect(location).toMatch(/^\/invoice\//);
  expect(await site(await operator(), (await siteNamed(name))?.id ?? "")).toMatchObject({
    image: "registry.invalid/app:1",
  });
});

it("creates a database beside the site, linked to it", async () => {
  const name = uniqueName("with-data");
  const { location, text } = await send({
    deployType: "image",
    image: "registry.invalid/app:1",
    name,
    database: "postgresql",
  });
  expect([location, text]).toEqual([expect.stringMatching(/^\/invoice\/inv_/), ""]);
  const { data } = (
    await api<{ data: { name: string; links: object[] }[] }>(await operator(), "GET", "/databases")
  ).body;
  expect(data.find((one) => one.name === `${name}-data`)?.links).toEqual([
    { siteId: (await siteNamed(name))?.id, variable: "DATABASE_URL", inService: false },
  ]);
});

it("creates nothing at all if a part of it is refused, and keeps what was typed", async () => {
  const name = uniqueName("half");
  const kind = { type: "postgresql", name: `${name}-data` };
  expect((await api(await operator(), "POST", "/databases", kind)).status).toBe(201);
  const { status, text } = await send({
    deployType: "image",
    image: "registry.invalid/app:1",
    name,
    database: "postgresql",
    variables: "GREETING=mine",
  });
  expect(status).toBe(409);
  expect(text).toContain(`value="${name}"`);
  expect(text).toContain("GREETING=mine");
  const left = await siteNamed(name);
  expect(left === undefined || (await site(await operator(), left.id)).status === "DELETING").toBe(true);
});

it.each([
  [
    "a variable that the database beside it sets, as in the .env file of an app that moves here",
    { githubUrl: "git.invalid/a/b", database: "postgresql", variables: "A=1\nDATABASE_URL=postgres://old" },
    "variables",
    "Remove DATABASE_URL: the database beside the site sets it",
  ],
  ["no repository", { githubUrl: "" }, "githubUrl", "Name the repository"],
  ["no address", { githubUrl: "nothing" }, "githubUrl", "Name the repository"],
  ["no image", { deployType: "image", image: "" }, "image", "Name the image"],
  ["no Dockerfile", { deployType: "dockerfile", dockerfile: "" }, "dockerfile", "Paste the Dockerfile"],
  ["a wrong name", { githubUrl: "git.invalid/a/b", name: "A B" }, "name", "1–63 of a–z"],
  ["a wrong port", { githubUrl: "git.invalid/a/b", port: "99999" }, "port", "must be at most 65535"],
  [
    "text that is no variable",
    { githubUrl: "git.invalid/a/b", variables: "hello" },
    "variables",
    "Line 1: write NAME=value",
  ],
  [
    "a bad variable",
    { githubUrl: "git.invalid/a/b", variables: "1.A=1" },
    "variables",
    "Line 1: write NAME=value",
  ],
])("is refused with %s, beside its field", async (_, fields, field, problem) => {
  const { status, text } = await send({ branch: "<i>kept</i>", ...fields });
  expect(status).toBe(400);
  expect(text).toMatch(new RegExp(`name="${field}"[^>]*aria-invalid="true"`));
  expect(text).toContain(problem);
  expect(text).toContain('value="&lt;i&gt;kept&lt;/i&gt;"');
  expect(text).not.toContain("<i>kept");
});
