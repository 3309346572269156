import { beforeAll, describe, expect, it } from "vitest";
import { operations } from "../../protocol/api/operations.ts";
import type { SourceInspection } from "../../protocol/api/sources.ts";
import {
  account,
  api,
  bindings,
  call,
  createSite,
  deployResult,
  finish,
  operator,
  operatorCookie,
  readyAgent,
  runningSite,
  site,
  siteUrl,
} from "./service.ts";

/** The operator's session; the same account as its key's. */
let cookie = "";
beforeAll(async () => {
  cookie = await operatorCookie();
});

const page = async (path: string) => {
  const response = await call(path, { headers: { Cookie: cookie, Accept: "text/html" } });
  return { status: response.status, headers: response.headers, text: await response.text() };
};
const post = async (path: string, fields: Record<string, string>, headers: Record<string, string> = {}) => {
  const response = await call(path, {
    method: "POST",
    redirect: "manual",
    headers: { Origin: siteUrl, Cookie: cookie, Accept: "text/html", ...headers },
    body: new URLSearchParams(fields),
  });
  return { status: response.status, location: response.headers.get("Location"), text: await response.text() };
};

describe("a site's pages", () => {
  it("are for who is signed in, and for nobody else's sites", async () => {
    const { siteId } = await createSite(await account());
    const own = await createSite(await operator());
    for (const path of [`/sites/${own.siteId}`, `/sites/${own.siteId}/log`, "/sites/new"]) {
      const answer = await call(path, { redirect: "manual" });
      expect([answer.status, answer.headers.get("Location")]).toEqual([
        303,
        `/sign-in?next=${encodeURIComponent(path)}`,
      ]);
    }
    expect((await page(`/sites/${siteId}`)).status).toBe(403);
    expect((await page(`/sites/${siteId}/log`)).status).toBe(403);
    expect((await post(`/sites/${siteId}`, { act: "set", key: "A", value: "1" })).status).toBe(403);
    expect((await page("/sites/site_unknown")).status).toBe(404);
    expect((await page(`/sites/${own.siteId}`)).headers.get("Cache-Control")).toBe("no-store");
  });

  it("change nothing for a form of another site's", async () => {
    const { siteId } = await createSite(await operator());
    const answer = await post(
      `/sites/${siteId}`,
      { act: "set", key: "A", value: "1" },
      { Origin: "https://evil.example" },
    );
    expect(answer.status).toBe(403);
    expect((await site(await operator(), siteId)).envVariables).toEqual([]);
  });

  it("check a repository before it is paid for, and show the form again with what was found and without the token", async () => {
    const host = await readyAgent();
    const answered = async (found: Partial<SourceInspection>) => {
      const { requestId, question } = await host.next("ask");
      const answer = {
        kind: "source" as const,
        found: { ...operations.inspectSource.examples.answer, ...found } as SourceInspection,
      };
      host.send({ type: "answer", requestId, answer, last: true });
      return question;
    };
    const fields = { deployType: "github", name: "checked", billingTerm: "3", gitToken: "secret-token" };
    const repository = { githubUrl: "https://git.invalid/owner/repo/", branch: "" };
    const checking = post("/sites/new", { ...fields, ...repository });
    const question = await answered({ port: 8080, startCommand: "npm run <b>" });
    expect(question).toMatchObject({
      source: { address: "git.invalid/owner/repo", branch: null, token: "secret-token" },
    });
    const { status, text } = await checking;
    expect(status).toBe(200);
    for (const shown of ["Express", "npm run &lt;b&gt;", 'value="8080"', 'value="checked"', "DATABASE_URL"])
      expect(text).toContain(shown);
    expect(text).not.toContain("secret-token");

    const failing = post("/sites/new", { ...fields, ...repository });
    await answered({ builder: null, problem: "Found Cargo.toml: add a Dockerfile." });
    expect((await failing).text).toContain("Found Cargo.toml: add a Dockerfile.");
    const wrong = await post("/sites/new", { ...fields, githubUrl: "nothing" });
    expect([wrong.status, wrong.text.includes("github.com/owner/repository")]).toEqual([400, true]);
    host.close();
  });

  it("lead from a form to the invoice; an address may be pasted as browsers show it", async () => {
    const fields = { deployType: "github", name: "from-a-form", port: "4000", billingTerm: "3", branch: "" };
    const { status, location } = await post("/sites", {
      ...fields,
      githubUrl: "https://git.invalid/owner/repo/",
    });
    expect([status, location]).toEqual([303, expect.stringMatching(/^\/invoice\/inv_/)]);
    const { data } = (await api<{ data: { id: string; name: string }[] }>(await operator(), "GET", "/sites"))
      .body;
    const made = data.find(({ name }) => name === "from-a-form");
    expect(await site(await operator(), made?.id ?? "")).toMatchObject({
      githubUrl: "git.invalid/owner/repo",
      port: 4000,
      billingTerm: 3,
      branch: null,
    });
    const shown = await page(`/sites/${made?.id}`);
    expect(shown.text).toContain(`href="${location}"`);
  });

  it("say what is wrong with what was typed, and why something cannot be done", async () => {
    const refused = await post("/sites", { deployType: "github", name: "A B", githubUrl: "x" });
    expect(refused.status).toBe(400);
    expect(refused.text).toContain("name: 1–63 of a–z, 0–9 and -");
    const { siteId } = await createSite(await operator());
    const wrong = await post(`/sites/${siteId}`, { act: "delete", name: "another" });
    expect(wrong.status).toBe(409);
    expect(wrong.text).toContain("to confirm the deletion");
  });

  it("set and remove variables, and never show a secret", async () => {
    const { siteId } = await createSite(await operator());
    const path = `/sites/${siteId}`;
    await post(path, { act: "set", key: "PLAIN", value: "seen\r\ntwice" });
    await post(path, { act: "set", key: "HIDDEN", value: "nobody-sees-this", encrypted: "true" });
    const { text } = await page(path);
    expect(text).toContain("seen\ntwice");
    expect(text).toContain("HIDDEN");
    expect(text).not.toContain("nobody-sees-this");
    await post(path, { act: "unset", key: "PLAIN" });
    expect((await site(await operator(), siteId)).envVariables).toEqual([
      { key: "HIDDEN", value: null, encrypted: true, scope: "both" },
    ]);
  });

  it("change settings: a field that is emptied is as the repository or the operator says again", async () => {
    const { siteId } = await createSite(await operator());
    const path = `/sites/${siteId}`;
    const fields = {
      branch: "stable",
      startCommand: 'node "a&b"',
      releaseCommand: "npm run migrate",
      port: "8080",
      healthCheckPath: "/up",
      startTimeoutSeconds: "90",
    };
    const save = (changes: object = {}) => post(path, { act: "settings", ...fields, ...changes });
    expect((await save()).location).toBe(`${path}#settings`);
    const changed = { ...fields, port: 8080, startTimeoutSeconds: 90 };
    expect(await site(await operator(), siteId)).toMatchObject(changed);
    expect((await page(path)).text).toContain('value="node &quot;a&amp;b&quot;"');
    await save({ startCommand: "", startTimeoutSeconds: "", branch: "" });
    expect(await site(await operator(), siteId)).toMatchObject({
      ...changed,
      startCommand: null,
      startTimeoutSeconds: null,
      branch: null,
    });
    const refused = await save({ port: "99999" });
    expect(refused.status).toBe(400);
    expect(refused.text).toContain("port");
    expect((await post(path, { act: "settings", ownerId: "acc_1" })).status).toBe(400);
  });

  it("show the TXT record of a domain to prove", async () => {
    const { siteId } = await createSite(await operator());
    const path = `/sites/${siteId}`;
    await post(path, { act: "add-domain", domain: "www.pages.example" });
    const [domain] = (await site(await operator(), siteId)).domains;
    expect((await page(path)).text).toContain(domain?.record.value);
    await post(path, { act: "remove-domain", domain: "www.pages.example" });
    expect((await site(await operator(), siteId)).domains).toEqual([]);
  });
});

describe("a site's page", () => {
  /** An agent that knows nothing of what runs, and says so at once. */
  async function quietAgent() {
    const on = await readyAgent();
    const answerAll = async (): Promise<never> => {
      for (;;) {
        const { requestId } = await on.next("ask");
        on.send({ type: "answer", requestId, answer: { kind: "refused", error: "Nothing." }, last: true });
      }
    };
    void answerAll();
    return on;
  }
  it("shows no version of a stopped site as one that serves", async () => {
    const on = await quietAgent();
    const { siteId } = await runningSite(await operator(), on);
    const live = '<span class="badge good">LIVE</span>';
    expect((await page(`/sites/${siteId}`)).text).toContain(live);
    await bindings.DB.prepare(
      "UPDATE sites SET status = 'STOPPED', wanted = 'STOPPED', serving = 0 WHERE id = ?",
    )
      .bind(siteId)
      .run();
    const { text } = await page(`/sites/${siteId}`);
    expect([text.includes(live), text.includes("LIVE")]).toEqual([false, true]);
    on.close();
  });

  it("changes the repository and its token; a token whose field is left empty stays, and is not shown", async () => {
    const { siteId } = await createSite(await operator(), { gitToken: "the-first-token" });
    const path = `/sites/${siteId}`;
    const sealed = async () =>
      (
        await bindings.DB.prepare("SELECT git_token_sealed AS token FROM sites WHERE id = ?")
          .bind(siteId)
          .first<{ token: string }>()
      )?.token;
    const before = await sealed();
    const settings = { act: "settings", port: "3000", githubUrl: "https://other.example/a/b/", gitToken: "" };
    expect((await post(path, settings)).status).toBe(303);
    expect((await site(await operator(), siteId)).githubUrl).toBe("other.example/a/b");
    expect(await sealed()).toBe(before);
    expect((await post(path, { ...settings, gitToken: "another-token" })).status).toBe(303);
    expect(await sealed()).not.toBe(before);
    expect((await page(path)).text).not.toMatch(/the-first-token|another-token/);
  });

  it("says of each button what is seen first, and of a deletion what was paid for", async () => {
    const on = await quietAgent();
    const { siteId } = await runningSite(await operator(), on);
    await post(`/sites/${siteId}`, { act: "set", key: "A", value: "1" });
    const { text } = await page(`/sites/${siteId}`);
    for (const [, read = "", seen = ""] of text.matchAll(/aria-label="([^"]+)"[^>]*>([^<]+)<\/button>/g))
      expect(read.startsWith(seen)).toBe(true);
    expect(text).toMatch(/the remaining term until \d{4}-\d\d-\d\d is not refunded/);
    on.close();
  });
});

it("the list of sites goes on beyond a hundred", async () => {
  const { siteId } = await createSite(await operator(), { name: "the-oldest-of-many" });
  await bindings.DB.prepare(`
    WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 210)
    INSERT INTO sites (id, account_id, name, status, deploy_type, port, pack_id, billing_term, slug, webhook_hash, created_at, updated_at)
    SELECT 'site_0z' || i, account_id, 'many-' || i, 'STOPPED', deploy_type, port, pack_id, billing_term, slug || i, webhook_hash || i,
      created_at, updated_at FROM sites, n WHERE id = ?`)
    .bind(siteId)
    .run();
  const first = (await page("/sites")).text;
  expect(first).not.toContain("the-oldest-of-many");
  const [, cursor = ""] = /href="(\/sites\?cursor=[^"]+)"/.exec(first) ?? [];
  const next = (await page(cursor)).text;
  expect(next).toContain("the-oldest-of-many");
  expect(next).not.toContain("/sites?cursor=");
  await bindings.DB.prepare("DELETE FROM sites WHERE id LIKE 'site_0z%'").run();
});

it("the deployments on a site's page go on beyond the newest ten", async () => {
  const { siteId } = await createSite(await operator());
  await bindings.DB.prepare(`
    WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 22)
    INSERT INTO deployments (id, site_id, account_id, number, status, trigger, created_at)
    SELECT 'dep_0z' || i, id, account_id, i - 9, 'CANCELLED', 'api', created_at FROM sites, n WHERE id = ?`)
    .bind(siteId)
    .run();
  const numbers = (text: string) => [...text.matchAll(/>#(\d+)</g)].map(([, number]) => Number(number));
  const first = (await page(`/sites/${siteId}`)).text;
  expect(numbers(first)).toEqual([13, 12, 11, 10, 9, 8, 7, 6, 5, 4]);
  const [, older = ""] = /href="([^"#]+cursor=[^"#]+)#deployments"/.exec(first) ?? [];
  const next = (await page(older)).text;
  expect(numbers(next)).toEqual([3, 2, 1]);
  expect(next).not.toContain("cursor=");
  expect((await page(`/sites/${siteId}?cursor=elsewhere`)).status).toBe(200);
});

it("the list of keys goes on beyond a hundred", async () => {
  await bindings.DB.prepare(`
    WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 210)
    INSERT INTO api_keys (id, account_id, name, hash, start, origin, created_at)
    SELECT 'key_0z' || i, id, 'many-' || i, 'hash-' || i, 'sk_many', 'dashboard', created_at
      FROM accounts, n WHERE role = 'operator'`).run();
  const first = (await page("/account/keys")).text;
  expect([first.includes("many-210"), first.includes("many-100")]).toEqual([true, false]);
  const [, older = ""] = /href="(\/account\/keys\?cursor=[^"]+)"/.exec(first) ?? [];
  const next = (await page(older)).text;
  expect([next.includes("many-210"), next.includes("many-100")]).toEqual([false, true]);
  expect(next).not.toContain("/account/keys?cursor=");
  await bindings.DB.prepare("DELETE FROM api_keys WHERE id LIKE 'key_0z%'").run();
});

it("a site's page draws what the site used, with a gap where it did not run, and tells it in words", async () => {
  const on = await readyAgent();
  const { siteId } = await runningSite(await operator(), on);
  const shown = page(`/sites/${siteId}`);
  const minute = (ago: number, memoryMb: number) => ({
    at: new Date(Date.now() - ago * 60_000).toISOString(),
    cpuMilli: 250,
    memoryMb,
    networkInBytes: 0,
    networkOutBytes: 1_500_000,
    diskMb: null,
  });
  for (let asked = 0; asked < 2; asked++) {
    const { requestId, question } = await on.next("ask");
    const answer =
      question.kind === "metrics"
        ? { kind: "metrics", samples: [minute(30.5, 300), minute(10.5, 100), minute(9.5, 150)] }
        : { kind: "events", events: [] };
    on.send({ type: "answer", requestId, answer, last: true });
  }
  const { text } = await shown;
  expect(text).toContain("<h2>Last hour</h2>");
  expect(text).toContain('aria-label="Memory in the last hour: 150 MB, maximum 300"');
  expect(text).toContain('aria-label="Network in the last hour: 1.5 MB per minute, maximum 1.5"');
  expect(text).not.toContain("Disk");
  expect(text).toContain('d="M29 1.0h1M49 39.7h1L50 30.0"');
});

describe("a deployment's page", () => {
  it("shows its log as it is written, nothing of it as HTML, and then how it ended", async () => {
    const on = await readyAgent();
    const key = await operator();
    const { siteId } = await runningSite(key, on);
    const { location } = await post(`/sites/${siteId}`, { act: "deploy" });
    const id = location?.replace("/deployments/", "") ?? "";
    const { job, attempt } = await on.next("job");
    const response = await call(`/deployments/${id}`, { headers: { Cookie: cookie } });
    expect(response.headers.get("Content-Encoding")).toBe("Identity");
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    const read = async (until: string) => {
      while (!text.includes(until)) {
        const next = await reader?.read();
        if (!next || next.done) throw new Error(`The page ended without ${until}: ${text.slice(-500)}`);
        text += next.value;
      }
    };
    await read("<pre>");
    expect(text).toContain("Cancel");
    expect(text).toContain("requested by you");
    const log = bindings.DEPLOYMENT_LOG.get(bindings.DEPLOYMENT_LOG.idFromName(id));
    const at = new Date().toISOString();
    await log.append(1, 1, [{ at, stream: "stdout", text: "\u001b[31m<script>alert(1)</script>\u001b[0m" }]);
    await read("&lt;script&gt;alert(1)&lt;/script&gt;\n");
    await finish(on, job, attempt, deployResult);
    await read("</html>");
    expect(text).toMatch(/<\/pre><\/div><p class="ended" role="status"><span class="badge good">LIVE/);
    expect(text).not.toContain("<script>");
    on.close();
  });

  it("is the owner's alone, as is its end", async () => {
    const on = await readyAgent();
    const { siteId } = await runningSite(await account(), on);
    const [row] = await bindings.DB.prepare("SELECT id FROM deployments WHERE site_id = ?")
      .bind(siteId)
      .all<{ id: string }>()
      .then(({ results }) => results);
    expect((await page(`/deployments/${row?.id}`)).status).toBe(403);
    expect((await post(`/deployments/${row?.id}/cancel`, {})).status).toBe(403);
    on.close();
  });
});
