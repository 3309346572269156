import { beforeAll, describe, expect, it } from "vitest";
import { fieldsOf, pagesOfOperator } from "./pages.ts";
import {
  account,
  api,
  bindings,
  call,
  createSite,
  operator,
  readyAgent,
  runningSite,
  site,
} from "./service.ts";

let pages: Awaited<ReturnType<typeof pagesOfOperator>>;
beforeAll(async () => {
  pages = await pagesOfOperator();
});
const pathOf = (siteId: string) => `/sites/${siteId}/settings`;

/** Sends a form of the page as it is shown, but for the changes. */
async function save(siteId: string, form: string, changes: Record<string, string> = {}) {
  const { text } = await pages.show(pathOf(siteId));
  return pages.send(pathOf(siteId), form, { ...fieldsOf(text, form), ...changes });
}

describe("a site's settings", () => {
  it("are their owner's alone", async () => {
    const { siteId } = await createSite(await account());
    expect((await pages.show(pathOf(siteId))).status).toBe(403);
    expect((await pages.send(pathOf(siteId), "run", { port: "1" })).status).toBe(403);
    expect((await pages.show(pathOf("site_unknown"))).status).toBe(404);
    const answer = await call(pathOf(siteId), { redirect: "manual" });
    expect(answer.headers.get("Location")).toBe(`/sign-in?next=${encodeURIComponent(pathOf(siteId))}`);
  });

  it("stay as they are when a form is sent untouched", async () => {
    const { siteId } = await createSite(await operator(), { branch: "main", startCommand: "npm start" });
    const { updatedAt: _before, ...before } = await site(await operator(), siteId);
    for (const form of ["source", "build", "run", "scale", "ingress"])
      expect([form, (await save(siteId, form)).status]).toEqual([form, 303]);
    const { updatedAt: _after, ...after } = await site(await operator(), siteId);
    expect(after).toEqual(before);
  });

  it("go back to what the repository or the operator says where a field is emptied", async () => {
    const { siteId } = await createSite(await operator());
    const changes = {
      startCommand: 'node "a&b"',
      releaseCommand: "npm run migrate",
      port: "8080",
      startTimeoutSeconds: "90",
    };
    expect((await save(siteId, "run", changes)).location).toBe(`${pathOf(siteId)}#run`);
    await save(siteId, "scale", { healthCheckPath: "/up", restartPolicy: "never", drainSeconds: "7" });
    await save(siteId, "build", { buildCommand: "make", singlePage: "false", languageVersion: "24" });
    expect(await site(await operator(), siteId)).toMatchObject({
      ...changes,
      port: 8080,
      startTimeoutSeconds: 90,
      healthCheckPath: "/up",
      lifecycle: { restartPolicy: "never", drainSeconds: 7 },
      buildCommand: "make",
      singlePage: false,
      languageVersion: "24",
    });
    expect((await pages.show(pathOf(siteId))).text).toContain('value="node &quot;a&amp;b&quot;"');
    await save(siteId, "run", { startCommand: "", startTimeoutSeconds: "" });
    await save(siteId, "build", { singlePage: "" });
    await save(siteId, "scale", { drainSeconds: "" });
    expect(await site(await operator(), siteId)).toMatchObject({
      startCommand: null,
      startTimeoutSeconds: null,
      releaseCommand: "npm run migrate",
      singlePage: null,
      lifecycle: { restartPolicy: "never" },
    });
  });

  it("are refused beside their field, with what was typed", async () => {
    const { siteId } = await createSite(await operator());
    for (const [form, name, value] of [
      ["run", "port", "99999"],
      ["source", "branch", "a..b"],
      ["scale", "healthCheckPath", "up <b>"],
      ["ingress", "redirects", "/only-one"],
      ["ingress", "redirects", "nowhere /new"],
      ["ingress", "rewrites", "/api https://elsewhere.example"],
      ["ingress", "allow", "everyone"],
      ["ingress", "headers", "Set-Cookie: a=b"],
      ["ingress", "password", "short"],
    ] as const) {
      const { status, text } = await save(siteId, form, {
        [name]: value,
        ...(name === "password" && { username: "team" }),
      });
      expect([name, value, status]).toEqual([name, value, 400]);
      expect(text).toMatch(new RegExp(`name="${name}"[^>]*aria-invalid="true"`));
      if (name !== "password") expect(text).toContain(value.replace("<b>", "&lt;b&gt;"));
    }
  });

  it("are refused in words that name the field by its label, in whole sentences", async () => {
    const { siteId } = await createSite(await operator());
    const refusal = async (form: string, fields: Record<string, string>) =>
      /data-reason[^>]*>([^<]*)</.exec((await save(siteId, form, fields)).text)?.[1];
    expect(await refusal("run", { port: "99999" })).toBe("Nothing was changed. Port: must be at most 65535.");
    expect(await refusal("ingress", { redirects: "nowhere /new" })).toMatch(
      /^Nothing was changed\. Redirects: [a-z].*[^.]\.$/,
    );
    expect(await refusal("delete", { confirm: "no" })).toMatch(/^Nothing was changed\. [A-Z][^:]*[^.]\.$/);
    const address = await pages.send("/account", "password", {
      current: "wrong one",
      password: "a new long password",
    });
    expect(address.text).toContain("Nothing was changed. This is not your current password.");
  });

  it("change the repository and its token; a token whose field is left empty stays, and is not shown", async () => {
    const { siteId } = await createSite(await operator(), { gitToken: "the-first-token" });
    const sealed = async () =>
      (
        await bindings.DB.prepare("SELECT git_token_sealed AS token FROM sites WHERE id = ?")
          .bind(siteId)
          .first<{ token: string | null }>()
      )?.token;
    const before = await sealed();
    const changed = await save(siteId, "source", {
      githubUrl: "https://other.example/a/b/",
      branch: "stable",
      lfs: "true",
    });
    expect(changed.status).toBe(303);
    expect(await site(await operator(), siteId)).toMatchObject({
      githubUrl: "other.example/a/b",
      branch: "stable",
      lfs: true,
    });
    expect(await sealed()).toBe(before);
    await save(siteId, "source", { gitToken: "another-token" });
    expect(await sealed()).not.toBe(before);
    expect((await pages.show(pathOf(siteId))).text).not.toMatch(/the-first-token|another-token/);
    await save(siteId, "source", { noToken: "true" });
    expect(await sealed()).toBeNull();
  });

  it("ask for a token or a password again where their form is refused, instead of offering to keep the one before", async () => {
    const { siteId } = await createSite(await operator(), { gitToken: "the-first-token" });
    const keeps = "Leave empty to keep it.";
    expect((await pages.show(pathOf(siteId))).text).toContain(keeps);
    const { status, text } = await save(siteId, "source", { gitToken: "another-token", branch: "a..b" });
    expect([status, text.includes("another-token")]).toEqual([400, false]);
    expect([text.includes("Type it again"), text.includes(keeps)]).toEqual([true, false]);
    expect((await save(siteId, "source", { branch: "a..b" })).text).toContain(keeps);
  });

  it("change an image with its login, and a Dockerfile", async () => {
    const image = await createSite(await operator(), {
      deployType: "image",
      githubUrl: undefined,
      image: "registry.invalid/app:1",
    });
    await save(image.siteId, "source", {
      image: "registry.invalid/app:2",
      registryUsername: "robot",
      registryPassword: "word",
    });
    expect((await site(await operator(), image.siteId)).image).toBe("registry.invalid/app:2");
    const pasted = await createSite(await operator(), {
      deployType: "dockerfile",
      githubUrl: undefined,
      dockerfile: "FROM alpine",
    });
    expect((await save(pasted.siteId, "source", { dockerfile: "FROM alpine\r\nRUN true\r\n" })).status).toBe(
      303,
    );
    expect(await site(await operator(), pasted.siteId)).toMatchObject({
      dockerfile: "FROM alpine\nRUN true\n",
    });
    const { text } = await pages.show(pathOf(pasted.siteId));
    expect(fieldsOf(text, "source")).toMatchObject({ dockerfile: "FROM alpine\nRUN true\n" });
    expect((await save(pasted.siteId, "source")).status).toBe(303);
    expect((await save(pasted.siteId, "source", { dockerfile: "" })).status).toBe(400);
  });

  it("say what visitors get: maintenance, redirects, headers, protection; and leave out of it what is emptied", async () => {
    const { siteId } = await createSite(await operator());
    const sent = await save(siteId, "ingress", {
      maintenance: "true",
      message: "Back at <noon>",
      redirects: "/old /new\n/blog/* https://example.com/posts 301\n",
      rewrites: "/api/* /v1",
      headers: "X-Frame-Options: DENY",
      username: "team",
      password: "a long password",
      allow: "203.0.113.0/24\n198.51.100.7",
      maxBodyMb: "25",
    });
    expect(sent.text.match(/role="alert"[^]*?<\/p>/)?.[0]).toBeUndefined();
    expect((await site(await operator(), siteId)).ingress).toMatchObject({
      maintenance: { message: "Back at <noon>" },
      redirects: [
        { from: "/old", to: "/new" },
        { from: "/blog", match: "prefix", to: "https://example.com/posts", code: 301 },
      ],
      rewrites: [{ from: "/api", match: "prefix", to: "/v1" }],
      headers: { "X-Frame-Options": "DENY" },
      basicAuth: { username: "team", hasPassword: true },
      allow: ["203.0.113.0/24", "198.51.100.7"],
      maxBodyMb: 25,
    });
    const { text } = await pages.show(pathOf(siteId));
    expect(text).toContain("Back at &lt;noon&gt;");
    expect(text).not.toContain("a long password");
    const fields = fieldsOf(text, "ingress");
    expect(fields["redirects"]).toBe("/old /new\n/blog/* https://example.com/posts 301");
    expect(fields["rewrites"]).toBe("/api/* /v1");
    const { maintenance: _, ...rest } = fields;
    await pages.send(pathOf(siteId), "ingress", {
      ...rest,
      redirects: "",
      rewrites: "",
      username: "",
      hsts: "",
      allow: "",
    });
    expect((await site(await operator(), siteId)).ingress).toMatchObject({
      maintenance: null,
      redirects: null,
      rewrites: null,
      basicAuth: null,
      allow: null,
      headers: { "X-Frame-Options": "DENY" },
    });
  });

  it("offer https only where the installation has it", async () => {
    const { siteId } = await createSite(await operator());
    expect((await pages.show(pathOf(siteId))).text).not.toMatch(/name="(?:hsts|httpsOnly)"/);
    const sent = await save(siteId, "ingress", { httpsOnly: "true" });
    expect([sent.status, sent.text.includes("this installation serves sites by plain http")]).toEqual([
      400,
      true,
    ]);
  });

  it("show the deploy webhook in a fold, and replace it", async () => {
    const { siteId } = await createSite(await operator());
    const address = async () => /\/webhooks\/deploy\/\w+/.exec((await pages.show(pathOf(siteId))).text)?.[0];
    const before = await address();
    expect(before).toBeDefined();
    expect((await pages.send(pathOf(siteId), "rotate")).status).toBe(303);
    expect(await address()).not.toBe(before);
  });

  it("say that a site that Bitbucket deploys needs a branch, because its deliveries do not name the default one", async () => {
    const { siteId } = await createSite(await operator());
    const { text } = await pages.show(pathOf(siteId));
    expect(text).toMatch(/<dt>Bitbucket<\/dt><dd>[^<]*Set a branch under Source[^<]*<\/dd>/);
  });

  it("say whether a push has ever deployed the site, and which deployment the last one began", async () => {
    const on = await readyAgent();
    const { siteId } = await runningSite(await operator(), on);
    const { body } = await api<{ url: string }>(await operator(), "GET", `/sites/${siteId}/webhook`);
    // GitHub's test delivery.
    await call(new URL(body.url).pathname, { method: "POST", headers: { "X-GitHub-Event": "ping" } });
    expect((await pages.show(pathOf(siteId))).text).toContain(
      "No push has deployed this site yet: push a commit to its branch. A ping, which some Git hosts send as a test, deploys nothing.",
    );
    await call(new URL(body.url).pathname, { method: "POST" });
    await on.next("job");
    const { text } = await pages.show(pathOf(siteId));
    expect(text).toMatch(
      /The last push that arrived started <a href="\/deployments\/dep_\w+">deployment #2<\/a>/,
    );
    expect(text).not.toContain("No push has deployed this site yet");
    on.close();
  });

  it("change the plan: a larger one leads to its invoice first", async () => {
    const on = await readyAgent();
    const { siteId } = await runningSite(await operator(), on);
    const [small, , large] = await bindings.DB.prepare(
      "SELECT id FROM packs WHERE kind = 'site' AND active = 1 ORDER BY price_cents",
    )
      .all<{ id: string }>()
      .then(({ results }) => results.map(({ id }) => id));
    expect((await save(siteId, "plan")).location).toBe(`${pathOf(siteId)}#plan`);
    const answer = await save(siteId, "plan", { packId: large ?? "" });
    expect(answer.location).toMatch(/^\/invoice\/inv_/);
    expect(await site(await operator(), siteId)).toMatchObject({ packId: small, nextPackId: large });
    on.close();
  });

  it("try the health check now, and keep what was typed meanwhile", async () => {
    const on = await readyAgent();
    const { siteId } = await runningSite(await operator(), on);
    const asked = pages.send(pathOf(siteId), "scale", {
      try: "true",
      replicas: "1",
      healthCheckPath: "/typed",
    });
    const { requestId } = await on.next("ask");
    on.send({
      type: "answer",
      requestId,
      answer: {
        kind: "health",
        health: {
          route: "serving",
          hostnames: [],
          containers: [
            {
              deploymentId: null,
              replica: 1,
              serves: true,
              running: true,
              exitCode: null,
              outOfMemory: false,
              restarts: 0,
              startedAt: null,
              finishedAt: null,
              listens: [{ port: 8080, loopbackOnly: false }],
              probe: { port: 3000, path: "/up", isHealthy: false, answer: "refused <it>", durationMs: 3.2 },
            },
          ],
          diskFreeMb: null,
        },
      },
      last: true,
    });
    const { status, text } = await asked;
    expect(status).toBe(200);
    expect(text).toContain("/up on port 3000 refused &lt;it&gt; after 3 ms");
    expect(text).toContain("It listens on 8080");
    expect(text).toContain('value="/typed"');
    on.close();
  });

  it("delete the site by its name only, after saying what is lost", async () => {
    const on = await readyAgent();
    const { siteId } = await runningSite(await operator(), on);
    const { text } = await pages.show(pathOf(siteId));
    expect(text).toMatch(/remaining term until .*\d+ \w{3} \d{4}.* is not refunded/s);
    const wrong = await pages.send(pathOf(siteId), "delete", { confirm: "another" });
    expect([wrong.status, wrong.text.includes("to confirm the deletion")]).toEqual([400, true]);
    const { name } = await site(await operator(), siteId);
    expect((await pages.send(pathOf(siteId), "delete", { confirm: name })).location).toBe("/sites");
    expect((await site(await operator(), siteId)).status).toBe("DELETING");
    on.close();
  });
});
