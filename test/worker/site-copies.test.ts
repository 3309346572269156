import { beforeAll, describe, expect, it } from "vitest";
import type { Deployment, DeploymentComparison } from "../../protocol/api/deployments.ts";
import { fieldsOf, pagesOfOperator, visitorWith } from "./pages.ts";
import {
  account,
  api,
  bindings,
  createSite,
  deployResult,
  finishNext,
  operator,
  operatorCookie,
  readyAgent,
  runningSite,
  site,
} from "./service.ts";

let pages: Awaited<ReturnType<typeof pagesOfOperator>>;
let key: string;
beforeAll(async () => {
  pages = await pagesOfOperator();
  key = await operator();
});

describe("a copy of a site", () => {
  const cloned = async (id: string, fields: Record<string, string>) =>
    pages.send(`/sites/${id}/clone`, "clone", fields);

  it("is made from its page with a name and a plan, and leads to the payment", async () => {
    const { siteId } = await createSite(key, { port: 4321 });
    const form = fieldsOf((await pages.show(`/sites/${siteId}/clone`)).text, "clone");
    const { name } = await site(key, siteId);
    expect(form["name"]).toBe(`${name}-copy`);
    const made = await cloned(siteId, form);
    expect([made.status, made.location]).toEqual([303, expect.stringMatching(/^\/invoice\/inv_/)]);
    const { body } = await api<{ data: { name: string; port: number }[] }>(key, "GET", "/sites?limit=1");
    expect(body.data).toMatchObject([{ name: `${name}-copy`, port: 4321 }]);
  });

  it("says what comes with it and what does not: what visitors get does, but for the primary domain", async () => {
    const { siteId } = await createSite(key);
    const [copied = "", left = ""] = (await pages.show(`/sites/${siteId}/clone`)).text
      .replaceAll(/\s+/g, " ")
      .split("Not copied");
    expect(copied).toContain("what visitors get: redirects, password, maintenance");
    expect(left).toContain("domains, schedules and links to databases");
    expect(left).not.toContain("visitors");
  });

  it("names the secrets that it lacks, and leads to where they are set", async () => {
    const { siteId } = await createSite(key);
    await api(key, "PATCH", `/sites/${siteId}`, {
      envVariables: [{ key: "TOKEN", value: "canary", encrypted: true }],
    });
    const page = await pages.show(`/sites/${siteId}/clone`);
    expect(page.text).toContain("<strong>TOKEN</strong>");
    expect(page.text).not.toContain("canary");
    const made = await cloned(siteId, { ...fieldsOf(page.text, "clone"), name: "with-secrets" });
    expect(made.location).toMatch(/^\/sites\/site_[0-9a-z]+\/variables$/);
  });

  it("says what is to be set on the page that it leads to, and what in the settings", async () => {
    const visitor = visitorWith(await operatorCookie());
    const copy = async (siteId: string, name: string) =>
      (await visitor.send(`/sites/${siteId}/clone`, "clone", { name, billingTerm: "1" })).said;
    const { siteId } = await createSite(key, { gitToken: "canary" });
    expect(await copy(siteId, "with-token")).toBe(
      "with-token is created. Secrets are not copied: set the access token of its repository here, then pay its invoice on the overview.",
    );
    await api(key, "PATCH", `/sites/${siteId}`, {
      envVariables: [{ key: "TOKEN", value: "canary", encrypted: true }],
    });
    expect(await copy(siteId, "with-both")).toBe(
      "with-both is created. Secrets are not copied: set TOKEN here and the access token of its repository in the settings, then pay its invoice on the overview.",
    );
  });

  it("is protected as the site is: its rules come with it, but for the name that is the site's own", async () => {
    const { siteId } = await createSite(key);
    const { hostname } = new URL((await site(key, siteId)).url);
    const rules = {
      basicAuth: { username: "ada", password: "correct horse battery" },
      allow: ["192.0.2.0/24"],
      headers: { "X-Robots-Tag": "noindex" },
    };
    const set = { settings: { ingress: { ...rules, primaryDomain: hostname } } };
    expect((await api(key, "PATCH", `/sites/${siteId}`, set)).status).toBe(200);
    const { body } = await api<{ siteId: string }>(key, "POST", `/sites/${siteId}/clone`, {
      name: "protected",
    });
    const { ingress } = await site(key, body.siteId);
    expect(ingress).toMatchObject({
      basicAuth: { username: "ada", hasPassword: true },
      allow: rules.allow,
      headers: rules.headers,
      primaryDomain: null,
    });
    const stored = await bindings.DB.prepare(
      "SELECT count(DISTINCT json_extract(ingress, '$.basicAuth.hash')) AS hashes FROM sites WHERE id IN (?, ?)",
    )
      .bind(siteId, body.siteId)
      .first();
    expect(stored).toEqual({ hashes: 1 });
  });

  it("with a wrong name is refused at the field, with what was typed kept; a stranger's site is no page", async () => {
    const { siteId } = await createSite(key);
    const form = fieldsOf((await pages.show(`/sites/${siteId}/clone`)).text, "clone");
    const refused = await cloned(siteId, { ...form, name: "Not <A> Name" });
    expect(refused.status).toBe(400);
    expect(refused.text).toMatch(/value="Not &lt;A&gt; Name"[^>]*aria-invalid="true"/);
    const foreign = await createSite(await account());
    expect((await pages.show(`/sites/${foreign.siteId}/clone`)).status).toBe(403);
    expect((await cloned(foreign.siteId, form)).status).toBe(403);
  });
});

describe("replicas", () => {
  it("are chosen with the plan's limit in view, and what each has is told", async () => {
    const { siteId } = await createSite(key);
    const path = `/sites/${siteId}/settings`;
    const told = async (count: string) => {
      const [, inside = ""] =
        /<span hidden[^>]*id="telling-replicas">([^]*?)<\/span>\s*<\/div>/.exec(
          (await pages.show(`${path}?replicas=${count}`)).text,
        ) ?? [];
      return inside.replaceAll(/<[^>]*>/g, "");
    };
    expect((await pages.show(path)).text).toMatch(/name="replicas"[^>]*max="4"/);
    expect(await told("2")).toMatch(/^Each has 128 MB of memory and 0\.\d+ cores\. .+ allows up to 4\.$/);
    expect(await told("5")).toMatch(/allows at most 4.*Choose a larger plan$/);
    expect(await told("x")).toMatch(/^From 1 to 4 on the plan/);
  });
});

/** A site with two versions, which differ in commit, port and a variable. */
async function twoVersions() {
  const on = await readyAgent();
  const { siteId } = await runningSite(key, on);
  await api(key, "PATCH", `/sites/${siteId}`, { settings: { port: 4000 } });
  await api(key, "PATCH", `/sites/${siteId}`, { envVariables: [{ key: "GREETING", value: "hello" }] });
  await api(key, "PATCH", `/sites/${siteId}`, { action: "deploy" });
  await finishNext(on, { ...deployResult, commit: "f".repeat(40) });
  const { body } = await api<{ data: Deployment[] }>(key, "GET", `/sites/${siteId}/deployments`);
  const [later, earlier] = body.data;
  if (!later || !earlier) throw new Error("two versions");
  return { on, siteId, later, earlier };
}

describe("deployments", () => {
  it("say which key asked for them, also once it is revoked; a payment or a session is no key", async () => {
    const { on, siteId, later, earlier } = await twoVersions();
    expect(later).toMatchObject({ trigger: "api", key: { name: expect.any(String) as string } });
    expect(earlier).toMatchObject({ trigger: "payment", key: null });
    await bindings.DB.prepare(
      `INSERT INTO api_keys (id, account_id, name, hash, start, origin, created_at, revoked_at)
        SELECT 'key_0gone', account_id, 'Lap<top', 'hash-gone', 'sk_gone', 'device', 0, 1 FROM sites WHERE id = ?`,
    )
      .bind(siteId)
      .run();
    await bindings.DB.prepare("UPDATE deployments SET key_id = 'key_0gone' WHERE id = ?")
      .bind(later.id)
      .run();
    const words = "the command line “Lap&lt;top”";
    expect((await pages.show(`/sites/${siteId}/deployments`)).text).toContain(words);
    expect((await pages.show(`/deployments/${later.id}`)).text).toContain(`by ${words}`);
    await pages.send(`/sites/${siteId}`, "deploy");
    const { body } = await api<{ data: Deployment[] }>(key, "GET", `/sites/${siteId}/deployments?limit=1`);
    expect(body.data).toMatchObject([{ trigger: "api", key: null }]);
    on.close();
  });

  it("are filtered by state and by what they began by; the address keeps it from page to page", async () => {
    const { on, siteId, later, earlier } = await twoVersions();
    const shown = async (query: string) => {
      const { text } = await pages.show(`/sites/${siteId}/deployments${query}`);
      return [later, earlier].map(({ number }) => text.includes(`<strong>#${number}</strong>`));
    };
    expect(await shown("?status=LIVE")).toEqual([true, false]);
    expect(await shown("?trigger=payment&status=")).toEqual([false, true]);
    expect(await shown("?trigger=nonsense")).toEqual([true, true]);
    const { text } = await pages.show(`/sites/${siteId}/deployments?status=FAILED`);
    expect(text).toContain("Nothing matches");
    await bindings.DB.prepare(`
      WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 37)
      INSERT INTO deployments (id, site_id, account_id, number, status, trigger, created_at)
      SELECT 'dep_0y' || i || substr(id, -8), id, account_id, i, 'CANCELLED', 'webhook', created_at FROM sites, n WHERE id = ?`)
      .bind(siteId)
      .run();
    const first = (await pages.show(`/sites/${siteId}/deployments?trigger=webhook`)).text;
    expect(first).toMatch(/href="[^"]*\?trigger=webhook&amp;cursor=dep_/);
    on.close();
  });

  it("are compared: any two of a site, whichever is named first", async () => {
    const { on, siteId, later, earlier } = await twoVersions();
    const { body } = await api<DeploymentComparison>(
      key,
      "GET",
      `/deployments/${later.id}/comparison?deploymentId=${earlier.id}`,
    );
    expect(body).toMatchObject({
      earlier: { id: earlier.id },
      later: { id: later.id },
      commit: true,
      environment: [{ key: "GREETING", change: "added" }],
      settings: [{ setting: "port", earlier: 3000, later: 4000 }],
      unknownSettings: [],
    });
    const path = `/sites/${siteId}/compare`;
    const { text } = await pages.show(`${path}?earlier=${earlier.id}&later=${later.id}`);
    for (const part of ["fffffff", '<code class="any-break">3000</code>', "4000", "GREETING", "added"])
      expect(text).toContain(part);
    // Of old versions, what they were built from is not kept.
    await bindings.DB.prepare("UPDATE deployments SET build = NULL WHERE id = ?").bind(earlier.id).run();
    const old = await api<DeploymentComparison>(
      key,
      "GET",
      `/deployments/${later.id}/comparison?deploymentId=${earlier.id}`,
    );
    expect(old.body.settings).toEqual(body.settings);
    expect(old.body.unknownSettings).toContain("buildCommand");
    expect((await pages.show(`${path}?earlier=${earlier.id}&later=${later.id}`)).text).toMatch(
      /Not known[^<]*Build command/,
    );
    const other = await twoVersions();
    for (const [first, second, problem] of [
      [later.id, later.id, "the same version"],
      [later.id, other.later.id, "is not a version of this site"],
      [other.earlier.id, other.later.id, "is not a version of this site"],
      [later.id, "dep_none", "is not a version of this site"],
    ])
      expect((await pages.show(`${path}?earlier=${first}&later=${second}`)).text).toContain(problem);
    const refused = await api(
      key,
      "GET",
      `/deployments/${later.id}/comparison?deploymentId=${other.later.id}`,
    );
    expect([refused.status, refused.body["issues"]]).toEqual([
      400,
      [{ path: "deploymentId", message: "name another deployment of the same site" }],
    ]);
    const stranger = await account();
    expect(
      (await api(stranger, "GET", `/deployments/${later.id}/comparison?deploymentId=${earlier.id}`)).status,
    ).toBe(403);
    on.close();
    other.on.close();
  });
});
