import { encode } from "uqr";
import { beforeAll, describe, expect, it } from "vitest";
import type { DatabaseCreated } from "../../protocol/api/databases.ts";
import type { Pack } from "../../protocol/api/packs.ts";
import type { SiteEvent, SiteSample } from "../../protocol/api/running.ts";
import { deployAgain } from "../../worker/pages/sites/failure.tsx";
import { fieldsOf, visitorWith } from "./pages.ts";
import {
  account,
  api,
  bindings,
  call,
  createSite,
  deployingSite,
  deployResult,
  fail,
  finish,
  finishNext,
  jobOf,
  operator,
  operatorCookie,
  readyAgent,
  runningSite,
  site,
  siteUrl,
  uniqueName,
  type Agent,
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
/** Sends a form of a page as a browser without a script does. */
const post = async (
  path: string,
  form: string,
  fields: Record<string, string> = {},
  headers: Record<string, string> = {},
) => {
  const response = await call(path, {
    method: "POST",
    redirect: "manual",
    headers: { Origin: siteUrl, Cookie: cookie, Accept: "text/html", ...headers },
    body: new URLSearchParams({ form, ...fields }),
  });
  return { status: response.status, location: response.headers.get("Location"), text: await response.text() };
};

/** An agent that tells these events and samples of every site, and nothing else. */
async function quietAgent(events: SiteEvent[] = [], samples: SiteSample[] = []) {
  const on = await readyAgent();
  const answerAll = async (): Promise<never> => {
    for (;;) {
      const { requestId, question } = await on.next("ask");
      const answer =
        question.kind === "events"
          ? { kind: "events", events }
          : question.kind === "metrics" && samples.length > 0
            ? { kind: "metrics", samples }
            : { kind: "refused", error: "Nothing." };
      on.send({ type: "answer", requestId, answer, last: true });
    }
  };
  void answerAll();
  return on;
}

/** A deployment that the agent fails with this error; its page. */
async function failedDeployment(on: Agent, siteId: string, error: string): Promise<string> {
  const { location } = await post(`/sites/${siteId}`, "deploy");
  const { job, attempt } = await on.next("job");
  await fail(on, job, attempt, error);
  return location ?? "";
}

const tabs = ["", "/deployments", "/logs", "/variables"];

describe("a site's pages", () => {
  it("are for who is signed in, and for nobody else's sites", async () => {
    const { siteId } = await createSite(await account());
    const own = await createSite(await operator());
    for (const tab of tabs) {
      const path = `/sites/${own.siteId}${tab}`;
      const answer = await call(path, { redirect: "manual" });
      expect([answer.status, answer.headers.get("Location")]).toEqual([
        303,
        `/sign-in?next=${encodeURIComponent(path)}`,
      ]);
      expect((await page(path)).status).toBe(200);
      expect((await page(`/sites/${siteId}${tab}`)).status).toBe(403);
      expect((await page(`/sites/site_unknown${tab}`)).status).toBe(404);
    }
    expect((await post(`/sites/${siteId}/variables`, "set", { key: "A", value: "1" })).status).toBe(403);
    expect((await page(`/sites/${own.siteId}`)).headers.get("Cache-Control")).toBe("no-store");
  });

  it("change nothing for a form of another origin's", async () => {
    const { siteId } = await createSite(await operator());
    const path = `/sites/${siteId}/variables`;
    const answer = await post(path, "set", { key: "A", value: "1" }, { Origin: "https://evil.example" });
    expect(answer.status).toBe(403);
    expect((await site(await operator(), siteId)).envVariables).toEqual([]);
  });

  it("lead from a site that waits for its payment to the invoice", async () => {
    const { siteId, invoiceToken } = await createSite(await operator());
    const { text } = await page(`/sites/${siteId}`);
    expect(text).toContain(`href="/invoice/${invoiceToken}"`);
    expect(text).not.toContain('value="deploy"');
    expect(text).not.toContain(">Renew<");
  });

  it("deploy, restart, stop and start; what is refused is said with its reason", async () => {
    const [on, key] = [await quietAgent(), await operator()];
    const { siteId } = await runningSite(key, on);
    const path = `/sites/${siteId}`;
    expect((await post(path, "restart")).location).toBe(path);
    const restart = await jobOf(on, "site.restart");
    await finish(on, restart.job, restart.attempt);
    const deploying = await post(`${path}/deployments`, "deploy", { ref: "v2", rebuild: "true" });
    expect(deploying.location).toMatch(/^\/deployments\/dep_/);
    const { job, attempt } = await on.next("job");
    expect(job).toMatchObject({ args: { rebuild: true, source: { address: "git.example/owner/repo" } } });
    expect((await page(deploying.location ?? "")).text).toContain("Under way");
    expect((await page("/sites")).text).toContain(`href="${(await site(key, siteId)).url}"`);
    expect((await page(`${path}/deployments`)).text).toContain(">you</td>");
    await finish(on, job, attempt, deployResult);
    expect((await post(path, "stop")).location).toBe(path);
    const stop = await on.next("job");
    await finish(on, stop.job, stop.attempt);
    const again = await post(path, "stop");
    expect(again.status).toBe(409);
    expect(again.text).toMatch(/class="callout (?:flash )?bad"/);
    expect((await post(`${path}/deployments`, "deploy", { ref: "a b" })).text).toContain(
      'aria-invalid="true"',
    );
    expect((await post(path, "start")).status).toBe(303);
    on.close();
  });

  it.each(["STOPPED", "FAILED"])("show no version of a %s site as one that serves", async (status) => {
    const on = await quietAgent();
    const { siteId } = await runningSite(await operator(), on);
    const live = '<span class="dot good">In service</span>';
    expect((await page(`/sites/${siteId}`)).text.split(live)).toHaveLength(3);
    await bindings.DB.prepare("UPDATE sites SET status = ?, wanted = 'STOPPED', serving = 0 WHERE id = ?")
      .bind(status, siteId)
      .run();
    const { text } = await page(`/sites/${siteId}`);
    expect([text.includes(live), text.includes("Not running")]).toEqual([false, true]);
    on.close();
  });

  it("say in the browser's tab how it goes: the state in the title unless all is well, the page and the site, and the icon's colour", async () => {
    const [on, key] = [await quietAgent(), await operator()];
    const head = async (path: string) => {
      const { text } = await page(path);
      const [, title] = /<title>([^<]+)<\/title>/.exec(text) ?? [];
      const [, tone] = /<link rel="icon"[^>]*data-state="(\w+)"/.exec(text) ?? [];
      return [title, tone];
    };
    const { siteId } = await runningSite(key, on, { name: "in-a-tab" });
    const path = `/sites/${siteId}`;
    expect(await head(path)).toEqual(["in-a-tab · Berth", "good"]);
    const { location } = await post(path, "deploy");
    const { job, attempt } = await on.next("job");
    expect(await head(location ?? "")).toEqual(["Building · Deployment #2 · in-a-tab · Berth", "busy"]);
    await fail(on, job, attempt, "The app exited with code 1.");
    expect(await head(location ?? "")).toEqual(["Failed · Deployment #2 · in-a-tab · Berth", "bad"]);
    expect((await head(`${path}/logs`))[0]).toMatch(/Logs · in-a-tab · Berth$/);
    expect(await head("/sites")).toEqual(["Sites · Berth", undefined]);
    on.close();
  });

  it("offer to bring back the version before one that crashed", async () => {
    const [on, key] = [await quietAgent(), await operator()];
    const { siteId } = await runningSite(key, on);
    const path = `/sites/${siteId}`;
    await post(path, "deploy");
    await finishNext(on, deployResult);
    await bindings.DB.prepare(
      "UPDATE deployments SET error = 'The app keeps exiting.' WHERE id = (SELECT current_deployment_id FROM sites WHERE id = ?)",
    )
      .bind(siteId)
      .run();
    await bindings.DB.prepare("UPDATE sites SET status = 'FAILED', serving = 0 WHERE id = ?")
      .bind(siteId)
      .run();
    const { text } = await page(path);
    expect(text).toMatch(/The site stopped working[^]*Roll back to #1<[^]*Read its log/);
    const fields = fieldsOf(text, "rollback:crashed");
    const { location } = await post(path, "rollback:crashed", fields);
    expect((await page(location ?? "")).text).toContain("you, a rollback");
    on.close();
  });

  it("offer what helps with the cause of a crash: a larger plan to an app that needs more memory or disk", async () => {
    const on = await quietAgent();
    const { siteId } = await runningSite(await operator(), on);
    const after = async (error: string) => {
      await bindings.DB.batch([
        bindings.DB.prepare(
          "UPDATE deployments SET error = ? WHERE id = (SELECT current_deployment_id FROM sites WHERE id = ?)",
        ).bind(error, siteId),
        bindings.DB.prepare("UPDATE sites SET status = 'FAILED', serving = 0 WHERE id = ?").bind(siteId),
      ]);
      const { text } = await page(`/sites/${siteId}`);
      return /Read its log<\/a><a class="button" href="[^"]*(#[a-z]+|variables)">([^<]*)</
        .exec(text)
        ?.slice(1);
    };
    const exited = "The app exited 5 times within a minute, last with code 137, and was stopped.";
    expect(await after(exited)).toEqual(["#run", "Edit the start command"]);
    const killed = "The app used more memory than its pack has (256 MB) and was killed by the kernel.";
    expect(await after(`${exited} ${killed}`)).toEqual(["#plan", "Change the plan"]);
    const full = "The site wrote more than its pack's disk and was stopped: its volumes hold 3.1 GB.";
    expect(await after(full)).toEqual(["#plan", "Change the plan"]);
    on.close();
  });

  it.each([
    [
      "the first of a build",
      'The build failed: "npm run build" exited with code 2. Its last lines: src/a.ts: error TS1005: here | b.ts: error TS1005: there | warning: x',
      "src/a.ts: error TS1005: here",
    ],
    [
      "the last of an app that ended",
      "The app exited with code 1 after 1.0 s: correct it. Its last lines: Error: cache is cold | Error: no PORT_KEY | bye",
      "Error: no PORT_KEY",
    ],
  ])("show the error that says why a deployment failed: %s", async (_, error, line) => {
    const on = await quietAgent();
    const { siteId, job, attempt } = await deployingSite(await operator(), on);
    await fail(on, job, attempt, error);
    const { text } = await page(`/sites/${siteId}`);
    expect(text).toContain(`<pre>${line}</pre>`);
    expect(text).toMatch(/<details id="last-lines"><summary>/);
    // The deployment's own page has the whole log.
    const [, own = ""] = /href="(\/deployments\/dep_\w+)#log"/.exec(text) ?? [];
    expect((await page(own)).text).not.toContain("last-lines");
    on.close();
  });

  it("unfold the last lines where none of them says why a deployment failed", async () => {
    const on = await quietAgent();
    const { siteId, job, attempt } = await deployingSite(await operator(), on);
    await fail(on, job, attempt, "The app exited with code 1 after 1.0 s: correct it. Its last lines: bye");
    expect((await page(`/sites/${siteId}`)).text).toMatch(/<details id="last-lines" open[^>]*>/);
    on.close();
  });

  it("offer to start what has run before only", async () => {
    const on = await quietAgent();
    const { siteId, job, attempt } = await deployingSite(await operator(), on);
    await fail(on, job, attempt, "The app exited with code 1.");
    const { text } = await page(`/sites/${siteId}`);
    expect(text).toContain("No version has run yet.");
    expect([text.includes('value="deploy"'), text.includes('value="start"')]).toEqual([true, false]);
    on.close();
  });

  it("ask for no deployment of a site that was never paid for when its settings are changed", async () => {
    const [on, visitor] = [await quietAgent(), visitorWith(cookie)];
    const [{ siteId }, running] = [
      await createSite(await operator()),
      await runningSite(await operator(), on),
    ];
    const saidAt = async (id: string) => [
      (await visitor.send(`/sites/${id}/data`, "add", { name: "kept", mountPath: "/kept" })).said,
      (
        await visitor.send(
          `/sites/${id}/settings`,
          "run",
          fieldsOf((await visitor.get(`/sites/${id}/settings`)).text, "run"),
        )
      ).said,
      (await visitor.send(`/sites/${id}/variables`, "generate", { key: "RANDOM" })).said,
    ];
    const first = "It is used from the first deployment, which starts with the payment.";
    expect(await saidAt(siteId)).toEqual([
      `The volume kept is added. ${first}`,
      `Saved. ${first}`,
      "RANDOM has a new random value.",
    ]);
    expect(await saidAt(running.siteId)).toEqual([
      "The volume kept is added. Deploy to use it.",
      "Saved. Deploy to use it.",
      "RANDOM has a new random value. It takes effect once the site is restarted or deployed.",
    ]);
    on.close();
  });

  it("take what is typed letter by letter, but for what people write as sentences", async () => {
    const { text } = await page("/sites/new");
    const typed = [...text.matchAll(/<(?:input|textarea)[^>]*>/g)]
      .map(([tag]) => tag)
      .filter((tag) => !/type="(?:hidden|checkbox|radio|number|password|search)"/.test(tag));
    expect(typed.length).toBeGreaterThan(5);
    expect(
      typed.filter((tag) => !/autocapitalize="none" autocorrect="off" spellcheck="false"/.test(tag)),
    ).toEqual([]);
    const chat = /<textarea[^>]*name="message"[^>]*>/.exec((await page("/assistant")).text)?.[0];
    expect(chat).not.toMatch(/autocapitalize|spellcheck/);
  });

  it("say of each button what is seen first", async () => {
    const on = await quietAgent();
    const { siteId } = await runningSite(await operator(), on);
    await post(`/sites/${siteId}/variables`, "set", { key: "A", value: "1" });
    for (const tab of tabs) {
      const { text } = await page(`/sites/${siteId}${tab}`);
      for (const [, read = "", seen = ""] of text.matchAll(/aria-label="([^"]+)"[^>]*>([^<]+)<\/button>/g))
        expect(read.startsWith(seen)).toBe(true);
    }
    on.close();
  });

  it("tell events in words, equal ones once, with versions by their numbers", async () => {
    const at = new Date().toISOString();
    const on = await quietAgent([
      { at, kind: "exit", detail: "<b>1</b>" },
      { at, kind: "restart", detail: "" },
      { at, kind: "exit", detail: "<b>1</b>" },
      { at, kind: "restart", detail: "" },
    ]);
    const { siteId } = await runningSite(await operator(), on);
    const { text } = await page(`/sites/${siteId}`);
    // Each restart follows from its end.
    expect(text).toContain("Exited on its own 2 times");
    expect(text).not.toContain("Restarted after it exited");
    expect(text).toContain("&lt;b&gt;1&lt;/b&gt;");
    on.close();
  });
});

describe("what a site uses now", () => {
  const sample = (memoryMb: number): SiteSample => ({
    at: new Date().toISOString(),
    cpuMilli: 20,
    memoryMb,
    networkInBytes: 500_000,
    networkOutBytes: 1_000_000,
    diskMb: 102.4,
  });
  /** The card "Now" of a new site of this plan. */
  async function meters(packId: string, memoryMb: number): Promise<string> {
    const on = await quietAgent([], [sample(memoryMb)]);
    const { siteId } = await runningSite(await operator(), on, { packId });
    const [, card = ""] = />Now<([^]*?)<\/section>/.exec((await page(`/sites/${siteId}`)).text) ?? [];
    on.close();
    return card.replaceAll(siteId, "ID");
  }
  const plans = async () => {
    const { body } = await api<{ data: Pack[] }>(await operator(), "GET", "/packs?limit=100");
    const ofSites = body.data.filter(({ kind }) => kind === "site");
    return ofSites.toSorted((one, other) => one.memoryMb - other.memoryMb);
  };

  it("stands beside what its plan has: memory, processor, disk and network", async () => {
    const [smallest] = await plans();
    const text = await meters(smallest!.id, 46);
    const said = [...text.matchAll(/<span>([^<]+)<\/span><span>([^<]+)<\/span>/g)].map(
      ([, label, used]) => `${label}: ${used}`,
    );
    expect(said).toEqual([
      `Memory: 46 of ${smallest!.memoryMb} MB`,
      `Processor: 0.02 of ${smallest!.cpuMilli / 1000} cores`,
      `Disk: 0.1 of ${smallest!.diskGb} GB`,
      "Network: 1.4 MB a minute, without a limit",
    ]);
    expect(text).not.toContain("Larger plan");
  });

  it("offers a bigger plan beside what comes near its limit, as long as there is one", async () => {
    const list = await plans();
    const [smallest, largest] = [list[0]!, list.at(-1)!];
    const full = await meters(smallest.id, smallest.memoryMb * 0.8);
    expect(full.match(/Larger plan/g)).toHaveLength(1);
    expect(full).toMatch(
      /aria-label="Memory"[^>]*><\/progress><a class="button" href="\/sites\/ID\/settings#plan">Larger plan</,
    );
    expect(await meters(smallest.id, smallest.memoryMb * 0.79)).not.toContain("Larger plan");
    expect(await meters(largest.id, largest.memoryMb * 0.99)).not.toContain("Larger plan");
  });
});

it("the address of a site is a QR code on its overview", async () => {
  const { siteId } = await createSite(await operator());
  const { url } = await site(await operator(), siteId);
  const { text } = await page(`/sites/${siteId}`);
  const [, size = "", path = ""] =
    /<details class="menu" id="address-qr">[^]*?viewBox="0 0 (\d+) \1"[^]*?<path d="([^"]+)"/.exec(text) ??
    [];
  const { size: wanted, data } = encode(url, { ecc: "M", border: 3 });
  expect(Number(size)).toBe(wanted);
  const drawn = data.map((row) => row.map(() => false));
  for (const [, x, y, width] of path.matchAll(/M(\d+) (\d+)h(\d+)v1h-\3z/g))
    drawn[Number(y)]!.fill(true, Number(x), Number(x) + Number(width));
  expect(drawn).toEqual(data);
  expect((await page(`/sites/${siteId}/settings`)).text).not.toContain("address-qr");
});

describe("a failed deployment", () => {
  const wrongPort =
    "Nothing listens on port 3000, but the app listens on 8080: set the site's port to it. Its last lines: <b>up</b> | up";

  it("stands above all with what still serves, and one button sets the port and deploys", async () => {
    const [on, key] = [await quietAgent(), await operator()];
    const { siteId } = await runningSite(key, on);
    const made = await failedDeployment(on, siteId, wrongPort);
    const { text } = await page(`/sites/${siteId}`);
    expect(text).toContain("version #1 still serves");
    expect(text).toContain("Set port to 8080 and deploy");
    expect(text).toContain(`/assistant?about=${made.replace("/deployments/", "")}`);
    expect(text).not.toContain("<b>up</b>");
    const fixed = await post(`/sites/${siteId}`, "fix:0", {
      deployment: made.replace("/deployments/", ""),
      fix: "0",
    });
    expect(fixed.location).toMatch(/^\/deployments\/dep_/);
    expect((await site(key, siteId)).port).toBe(8080);
    expect(await finishNext(on, deployResult)).toMatchObject({ args: { run: { port: 8080 } } });
    expect((await page(made)).text).toContain("version #3 serves now");
    on.close();
  });

  it("says what is deployed anew: the newest commit, or what was asked for instead", async () => {
    const [on, key] = [await quietAgent(), await operator()];
    const { siteId } = await runningSite(key, on);
    const newest = await failedDeployment(on, siteId, "The host was interrupted.");
    expect((await page(newest)).text).toContain("Deploy the newest commit");
    const { deploymentId } = (
      await api<{ deploymentId: string }>(key, "PATCH", `/sites/${siteId}`, { action: "deploy", ref: "v2" })
    ).body;
    const { job, attempt } = await on.next("job");
    await fail(on, job, attempt, wrongPort);
    const { text } = await page(`/deployments/${deploymentId}`);
    expect([text.includes("Deploy again"), text.includes("Deploy the newest commit")]).toEqual([true, false]);
    expect(deployAgain({ deployType: "image" }, null)).toBe("Deploy again");
    await post(`/sites/${siteId}`, "fix:0", { deployment: deploymentId, fix: "0" });
    expect(await finishNext(on, deployResult)).toMatchObject({ args: { source: { branch: "v2" } } });
    on.close();
  });

  it("offers no remedy that is not there, nor one of somebody else's", async () => {
    const on = await quietAgent();
    const { siteId } = await runningSite(await operator(), on);
    const made = await failedDeployment(on, siteId, "The app exited with code 1 after 1 s.");
    const id = made.replace("/deployments/", "");
    expect((await page(made)).text).toContain(`href="/sites/${siteId}/settings#run">Edit the start command<`);
    expect((await post(`/sites/${siteId}`, "fix:7", { deployment: id, fix: "7" })).status).toBe(409);
    const others = await runningSite(await account(), on);
    const [theirs] = await bindings.DB.prepare("SELECT id FROM deployments WHERE site_id = ?")
      .bind(others.siteId)
      .all<{ id: string }>()
      .then(({ results }) => results);
    expect((await post(`/sites/${siteId}`, "fix:0", { deployment: theirs?.id ?? "", fix: "0" })).status).toBe(
      403,
    );
    on.close();
  });
});

describe("variables", () => {
  it("that a link to a database sets stand among the others, without a value", async () => {
    const key = await operator();
    const { siteId } = await createSite(key);
    const made = await api<DatabaseCreated>(key, "POST", "/databases", {
      name: uniqueName("linked"),
      type: "postgresql",
      billingTerm: 1,
    });
    const { databaseId } = made.body;
    await api(key, "POST", `/databases/${databaseId}/links`, { siteId });
    const path = `/sites/${siteId}/variables`;
    await post(path, "set", { key: "OWN", value: "1" });
    const { text } = await page(path);
    expect(text).toMatch(/Variables · 2/);
    const [, row = ""] = /<tr data-linked="DATABASE_URL">([^]*?)<\/tr>/.exec(text) ?? [];
    expect(row).toContain("database link");
    expect(row).toContain(`href="/databases/${databaseId}"`);
    expect(row).not.toContain("<form");
  });

  it("that are staged and refused are on the page again", async () => {
    const { siteId } = await createSite(await operator());
    const path = `/sites/${siteId}/variables`;
    const staged = Array.from({ length: 201 }, (_, index) => ({ key: `A${index}`, value: '"1" & 2' }));
    const changes = JSON.stringify(staged);
    const { status, text } = await post(path, "changes", { changes });
    expect(status).toBe(400);
    expect(text).toContain("Nothing was changed. Save at most 200 variables at a time.");
    expect(fieldsOf(text, "changes")["changes"]).toBe(changes);
    expect(fieldsOf((await page(path)).text, "changes")["changes"]).toBe("");
  });

  it("are saved where the restart that is asked for with them is refused, and both is said", async () => {
    const [on, key] = [await quietAgent(), await operator()];
    const { siteId } = await runningSite(key, on);
    await post(`/sites/${siteId}`, "stop");
    const { job, attempt } = await on.next("job");
    await finish(on, job, attempt);
    const fields = { key: "A", value: "1", apply: "restart" };
    const { said } = await visitorWith(cookie).send(`/sites/${siteId}/variables`, "set", fields);
    expect(said).toMatch(/^Saved, but not restarted: ./);
    expect((await site(key, siteId)).envVariables).toMatchObject([{ key: "A", value: "1" }]);
    on.close();
  });

  it("of the name PORT leave the port of the settings where it is, and the page says so", async () => {
    const { siteId } = await createSite(await operator(), { port: 4000 });
    const path = `/sites/${siteId}/variables`;
    const builtIn = async () =>
      /<code>PORT<\/code> <span class="chip">built in<\/span>[^]*?<\/tr>/.exec((await page(path)).text)?.[0];
    const before = await builtIn();
    await post(path, "set", { key: "PORT", value: "8080" });
    expect(before).toContain("<code>4000</code>");
    expect(before).toContain("a variable of this name is used only in builds");
    expect(await builtIn()).toBe(before);
  });

  it("are set, replaced and removed, and a secret is never shown", async () => {
    const { siteId } = await createSite(await operator());
    const path = `/sites/${siteId}/variables`;
    await post(path, "set", { key: "PLAIN", value: "seen\r\ntwice" });
    await post(path, "set", { key: "HIDDEN", value: "nobody-sees-this", encrypted: "true", scope: "build" });
    const { text } = await page(path);
    expect(text).toContain("seen\ntwice");
    expect(text).toContain("HIDDEN");
    expect(text).not.toContain("nobody-sees-this");
    await post(path, "unset:PLAIN", { key: "PLAIN" });
    expect((await site(await operator(), siteId)).envVariables).toEqual([
      { key: "HIDDEN", value: null, encrypted: true, scope: "build" },
    ]);
    const refused = await post(path, "set", { key: "1 BAD", value: "typed <b>" });
    expect(refused.status).toBe(400);
    expect(refused.text).toContain("typed &lt;b&gt;");
    expect(refused.text).toContain('aria-invalid="true"');
  });

  it("keep their value where their menu is saved with it as it is shown, which is not at all for a secret", async () => {
    const [on, key] = [await quietAgent(), await operator()];
    const { siteId } = await runningSite(key, on);
    const path = `/sites/${siteId}/variables`;
    const hidden = { key: "HIDDEN", value: "s3cret-value", encrypted: true };
    await api(key, "PATCH", `/sites/${siteId}`, { envVariables: [{ key: "PLAIN", value: "1" }, hidden] });
    const valuesAfter = async (form: string, fields: Record<string, string>) => {
      await post(path, form, { ...fields, apply: "restart" });
      const { job, attempt } = await on.next("job");
      await finish(on, job, attempt);
      return job.args as { run: { env: object[] } };
    };
    const { text } = await page(path);
    const edit = (of: string) => ({ ...fieldsOf(text, `set:${of}`), scope: "runtime" });
    const secret = { key: "HIDDEN", value: "s3cret-value", scope: "runtime", secret: true };
    await post(path, "set:PLAIN", { ...edit("PLAIN"), encrypted: "true" });
    expect((await valuesAfter("set:HIDDEN", edit("HIDDEN"))).run.env).toEqual([
      { key: "PLAIN", value: "1", scope: "runtime", secret: true },
      secret,
    ]);
    const staged = JSON.stringify([
      { key: "PLAIN", value: "2", isEdit: true },
      { key: "HIDDEN", value: "", scope: "build", isEdit: true },
    ]);
    expect((await valuesAfter("changes", { changes: staged })).run.env).toEqual([
      { key: "PLAIN", value: "2", scope: "runtime", secret: true },
      { ...secret, scope: "build" },
    ]);
    // Where a name is typed, what is typed beside it is the value.
    expect((await valuesAfter("set", { key: "HIDDEN", value: "" })).run.env).toMatchObject([
      { key: "PLAIN" },
      { key: "HIDDEN", value: "" },
    ]);
    await post(path, "set", { key: "HIDDEN", value: "back" });
    const emptied = { ...edit("HIDDEN"), empty: "true" };
    expect((await valuesAfter("set:HIDDEN", emptied)).run.env).toMatchObject([
      { key: "PLAIN" },
      { key: "HIDDEN", value: "", secret: true },
    ]);
    on.close();
  });

  it("keep their line breaks, of either kind and at the beginning, where something else in their menu is changed", async () => {
    const [key, { siteId }] = [await operator(), await createSite(await operator())];
    const path = `/sites/${siteId}/variables`;
    const values = ["a\r\nb\r\n", "a\nb", "a\r\nb\nc", "\n\na", "\r\na", " a ", "\n", ""];
    const envVariables = values.map((value, index) => ({ key: `A${index}`, value }));
    await api(key, "PATCH", `/sites/${siteId}`, { envVariables });
    for (const [index, { key: name }] of envVariables.entries()) {
      const { value = "", ...fields } = fieldsOf((await page(path)).text, `set:${name}`);
      const isStaged = index % 2 === 1;
      const form = { ...fields, scope: "build", value: value.replaceAll("\n", "\r\n") };
      const changes = JSON.stringify([{ key: name, value, scope: "build", isEdit: true }]);
      await post(path, isStaged ? "changes" : `set:${name}`, isStaged ? { changes } : form);
    }
    expect((await site(key, siteId)).envVariables).toEqual(
      envVariables.map((one) => ({ ...one, encrypted: false, scope: "build" })),
    );
    expect((await page(path)).text).toContain('data-copy="a&#13;\nb&#13;\n"');
    await post(path, "set:A3", { ...fieldsOf((await page(path)).text, "set:A3"), value: "\r\n\r\nab" });
    expect((await site(key, siteId)).envVariables[3]?.value).toBe("\n\nab");
  });

  it("are pasted as a file, and staged changes are one version", async () => {
    const { siteId } = await createSite(await operator());
    const path = `/sites/${siteId}/variables`;
    await post(path, "many", { file: '# ours\r\nA=1\r\nB="two\r\nlines"\r\n' });
    const values = async () =>
      (await site(await operator(), siteId)).envVariables.map(({ key, value }) => [key, value]);
    expect(await values()).toEqual([
      ["A", "1"],
      ["B", "two\nlines"],
    ]);
    const wrong = await post(path, "many", { file: "A=2\nnothing" });
    expect(wrong.status).toBe(400);
    expect(wrong.text).toContain("line 2");
    const changes = JSON.stringify([
      { key: "A", value: null },
      { key: "C", value: "3" },
    ]);
    expect((await post(path, "changes", { changes })).location).toBe(path);
    expect(await values()).toEqual([
      ["B", "two\nlines"],
      ["C", "3"],
    ]);
    for (const bad of ["", "{", "[]", '[{"key":"A"}]'])
      expect((await post(path, "changes", { changes: bad })).status).toBe(400);
    const { text } = await page(path);
    expect(text).toMatch(/C added, A removed|A removed, C added/);
    await post(path, "restore:1", { version: "1" });
    expect(await values()).toEqual([
      ["A", "1"],
      ["B", "two\nlines"],
    ]);
    expect((await post(path, "generate", { key: "RANDOM" })).location).toBe(path);
    expect((await values()).at(-1)).toEqual(["RANDOM", null]);
  });

  it("have a history that counts many changes instead of naming them all at once, and ends with the version in service", async () => {
    const [on, key] = [await quietAgent(), await operator()];
    const { siteId } = await runningSite(key, on);
    const path = `/sites/${siteId}/variables`;
    await post(path, "set", { key: "FIRST", value: "1", apply: "deploy" });
    await finishNext(on, deployResult);
    const many = Array.from({ length: 106 }, (_, at) => ({ key: `FLAG_${at}`, value: "1" }));
    await post(path, "changes", { changes: JSON.stringify([...many, { key: "FIRST", value: null }]) });
    expect((await page(path)).text).toContain("<summary>106 added, 1 removed</summary>FLAG_0 added, ");
    for (let at = 0; at < 21; at++) await post(path, "set", { key: "FLAG_0", value: `new ${at}` });
    expect((await page(path)).text).toMatch(/Version \d+\s+<span class="chip">in service<\/span>/);
    await bindings.DB.prepare("DELETE FROM site_env_versions WHERE site_id = ? AND version = 1")
      .bind(siteId)
      .run();
    expect((await page(path)).text).toContain("the oldest one kept, with 106 variables");
    on.close();
  });

  it("that the version in service does not have are marked until it is restarted", async () => {
    const [on, key] = [await quietAgent(), await operator()];
    const { siteId } = await runningSite(key, on);
    const path = `/sites/${siteId}/variables`;
    await post(path, "set", { key: "NEW", value: "1" });
    expect((await page(path)).text).toContain("not in service yet");
    const { location } = await post(path, "set", { key: "NEW", value: "2", apply: "restart" });
    expect(location).toBe(path);
    const { job, attempt } = await jobOf(on, "site.restart");
    await finish(on, job, attempt);
    expect((await page(path)).text).not.toContain("not in service yet");
    const database = { name: uniqueName("waits"), type: "redis", billingTerm: 1 };
    const { databaseId } = (await api<DatabaseCreated>(key, "POST", "/databases", database)).body;
    await api(key, "POST", `/databases/${databaseId}/links`, { siteId });
    expect((await page(path)).text).toMatch(
      /REDIS_URL<\/code>[^<]*<[^>]*>database link<(?:(?!<\/td>)[^])*not in service yet/,
    );
    await post(`/sites/${siteId}`, "restart");
    const again = await jobOf(on, "site.restart");
    await finish(on, again.job, again.attempt);
    expect((await page(path)).text).not.toContain("not in service yet");
    on.close();
  });
});

describe("a deployment's page", () => {
  it("shows without a script its log as it is written, nothing of it as HTML, and then how it ended", async () => {
    const on = await quietAgent();
    const { siteId } = await runningSite(await operator(), on);
    const { location } = await post(`/sites/${siteId}`, "deploy");
    const id = location?.replace("/deployments/", "") ?? "";
    const { job, attempt } = await on.next("job");
    const shown = (await page(`/deployments/${id}`)).text;
    expect(shown).toContain(`data-stream="/api/v1/deployments/${id}/logs"`);
    expect(shown).toMatch(
      /<noscript><meta http-equiv="refresh" content="0; url=\/deployments\/\w+\?plain=1#log"/,
    );
    expect(shown).toContain("version #1 serves until this one takes over");
    expect(shown).toMatch(/<li class="now">(?:(?!<\/li>)[^])*data-counts="\d+"/);
    const response = await call(`/deployments/${id}?plain=1`, { headers: { Cookie: cookie } });
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
    expect(text).toContain("by you");
    const log = bindings.DEPLOYMENT_LOG.get(bindings.DEPLOYMENT_LOG.idFromName(id));
    const at = new Date().toISOString();
    await log.append(1, 1, [{ at, stream: "stdout", text: "\u001b[31m<script>alert(1)</script>\u001b[0m" }]);
    await read("&lt;script&gt;alert(1)&lt;/script&gt;\n");
    await finish(on, job, attempt, deployResult);
    await read("</html>");
    expect(text).toMatch(/<\/pre><\/div><p class="ended" role="status"><span class="dot good">In service/);
    expect(text).not.toContain("<script>alert");
    on.close();
  });

  it("says after a rollback which of the site's settings still differ, and takes them back", async () => {
    const [on, key] = [await quietAgent(), await operator()];
    const { siteId } = await runningSite(key, on);
    const first = (await site(key, siteId)).currentDeployment?.id ?? "";
    await call(`/api/v1/sites/${siteId}`, {
      method: "PATCH",
      headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
      body: JSON.stringify({ settings: { startCommand: "node broken.js" } }),
    });
    await post(`/sites/${siteId}`, "deploy");
    await finishNext(on, deployResult);
    const { location } = await post(`/deployments/${first}`, "rollback");
    const back = await on.next("job");
    await finish(on, back.job, back.attempt, deployResult);
    const { text } = await page(location ?? "");
    expect(text).toContain("Rolled back, but the site&#39;s settings still differ");
    expect(text).toContain("node broken.js");
    expect((await post(location ?? "", "settings")).location).toBe(location);
    expect((await site(key, siteId)).startCommand).toBeNull();
    expect((await page(location ?? "")).text).not.toContain("node broken.js");
    on.close();
  });

  it("cancels, and is the owner's alone", async () => {
    const on = await quietAgent();
    const { siteId } = await runningSite(await account(), on);
    const [row] = await bindings.DB.prepare("SELECT id FROM deployments WHERE site_id = ?")
      .bind(siteId)
      .all<{ id: string }>()
      .then(({ results }) => results);
    for (const query of ["", "?plain=1"])
      expect((await page(`/deployments/${row?.id}${query}`)).status).toBe(403);
    for (const form of ["cancel", "rollback", "redeploy", "settings"])
      expect((await post(`/deployments/${row?.id}`, form)).status).toBe(403);
    expect((await page("/deployments/dep_unknown")).status).toBe(404);
    const own = await runningSite(await operator(), on);
    const { location } = await post(`/sites/${own.siteId}`, "deploy");
    await on.next("job");
    expect((await post(location ?? "", "cancel")).location).toBe(location);
    await on.next("cancel");
    on.close();
  });
});

describe("two versions of a site", () => {
  /** A site whose second version has another start command, another variable and another commit. */
  async function twoVersions() {
    const [on, key] = [await quietAgent(), await operator()];
    const { siteId } = await runningSite(key, on);
    const first = (await site(key, siteId)).currentDeployment?.id ?? "";
    await api(key, "PATCH", `/sites/${siteId}`, { settings: { startCommand: "node <b>new</b>.js" } });
    await api(key, "PATCH", `/sites/${siteId}`, {
      envVariables: [{ key: "TOKEN", value: "nobody-sees-this", encrypted: true }],
    });
    await post(`/sites/${siteId}`, "deploy");
    await finishNext(on, {
      ...deployResult,
      commit: "b".repeat(40),
      commitMessage: "Second\n\nMore",
    });
    const second = (await site(key, siteId)).currentDeployment?.id ?? "";
    on.close();
    return { siteId, first, second };
  }
  const rows = (text: string): string[][] => {
    const [, table = ""] = /id="differences"[^]*?<tbody>([^]*?)<\/tbody>/.exec(text) ?? [];
    return [...table.matchAll(/<tr>([^]*?)<\/tr>/g)].map(([, row = ""]) =>
      [...row.matchAll(/<td>([^]*?)<\/td>/g)].map(([, cell = ""]) =>
        cell
          .replaceAll(/<[^>]+>/g, " ")
          .replaceAll(/\s+/g, " ")
          .trim(),
      ),
    );
  };

  it("stand side by side: source, settings and variables, without a secret's value, the earlier one first", async () => {
    const { siteId, first, second } = await twoVersions();
    const compared = (await page(`/sites/${siteId}/compare?earlier=${first}&later=${second}`)).text;
    expect(rows(compared)).toEqual([
      ["Source", "aaaaaaa First", "bbbbbbb Second"],
      ["Start command", expect.any(String), "node &lt;b&gt;new&lt;/b&gt;.js"],
      ["Variable TOKEN", "not set", "added"],
    ]);
    expect(compared).not.toContain("nobody-sees-this");
    const heads = [
      ...compared.matchAll(/<span class="soft">(Earlier|Later)<\/span> <a href="([^"]+)">(#\d)</g),
    ];
    expect(heads.map(([, ...head]) => head)).toEqual([
      ["Earlier", `/deployments/${first}`, "#1"],
      ["Later", `/deployments/${second}`, "#2"],
    ]);
    // Whichever is chosen first: what came later is the later one.
    const turned = (await page(`/sites/${siteId}/compare?earlier=${second}&later=${first}`)).text;
    expect(rows(turned)).toEqual(rows(compared));
  });

  it("that are the same, or not both of this site, are not compared, and the page says which to choose", async () => {
    const [{ siteId, first }, other] = [await twoVersions(), await twoVersions()];
    const said = async (earlier: string, later: string) =>
      (await page(`/sites/${siteId}/compare?earlier=${earlier}&later=${later}`)).text;
    expect(await said(first, first)).toContain("These are the same version: choose two different ones.");
    expect(await said(first, other.second)).toContain("One of the two is not a version of this site");
    expect(await said(other.first, other.second)).toContain("One of the two is not a version of this site");
    expect(await said(first, "dep_unknown")).toContain("One of the two is not a version of this site");
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

it("pages know all sites and databases of an account that has more than a hundred", async () => {
  const { siteId } = await createSite(await operator(), { name: "known-among-many" });
  const database = { name: uniqueName("known"), type: "postgresql", billingTerm: 1 };
  const { databaseId } = (await api<DatabaseCreated>(await operator(), "POST", "/databases", database)).body;
  await api(await operator(), "POST", `/databases/${databaseId}/links`, { siteId });
  // Newer, and paid for a shorter time: first in each list.
  for (const [table, id, prefix, unique] of [
    ["sites", siteId, "site_0z", ["name", "webhook_hash", "slug"]],
    ["databases", databaseId, "db_0z", ["name"]],
  ] as const) {
    const columns = (
      await bindings.DB.prepare(`SELECT name FROM pragma_table_info('${table}')`).all<{ name: string }>()
    ).results
      .map(({ name }) => name)
      .filter((name) => !["id", "paid_until", ...unique].includes(name));
    await bindings.DB.prepare(`
      WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 210)
      INSERT INTO ${table} (id, paid_until, ${[...unique, ...columns].join()})
      SELECT '${prefix}' || i, 1, ${[...unique.map((name) => `${name} || i`), ...columns].join()} FROM ${table}, n WHERE id = ?`)
      .bind(id)
      .run();
    await bindings.DB.prepare(`UPDATE ${table} SET paid_until = 2 WHERE id = ?`).bind(id).run();
  }
  const knows = async (path: string, text: string) => ({ [path]: (await page(path)).text.includes(text) });
  const known = await Promise.all([
    knows("/databases/new", `value="${siteId}"`),
    knows(`/databases/${databaseId}/connect`, "known-among-many"),
    knows(`/sites/${siteId}`, `href="/databases/${databaseId}`),
    knows(`/sites/${siteId}/variables`, 'data-linked="DATABASE_URL"'),
    knows("/", `href="/sites/${siteId}"`),
    knows("/", `href="/databases/${databaseId}"`),
    knows("/activity", `<option value="${siteId}"`),
    knows("/activity", `<option value="${databaseId}"`),
    knows("/billing", `href="/sites/${siteId}"`),
    knows("/billing", `href="/databases/${databaseId}"`),
  ]);
  expect(known.filter((one) => !Object.values(one)[0])).toEqual([]);
  await bindings.DB.prepare("DELETE FROM sites WHERE id LIKE 'site_0z%'").run();
  await bindings.DB.prepare("DELETE FROM databases WHERE id LIKE 'db_0z%'").run();
});

it("the deployments of a site go on beyond the newest twenty-five", async () => {
  const { siteId } = await createSite(await operator());
  await bindings.DB.prepare(`
    WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 37)
    INSERT INTO deployments (id, site_id, account_id, number, status, trigger, created_at)
    SELECT 'dep_0z' || i, id, account_id, i - 9, 'CANCELLED', 'api', created_at FROM sites, n WHERE id = ?`)
    .bind(siteId)
    .run();
  const numbers = (text: string) =>
    [...text.matchAll(/<strong>#(\d+)</g)].map(([, number]) => Number(number));
  const first = (await page(`/sites/${siteId}/deployments`)).text;
  expect(numbers(first)).toEqual(Array.from({ length: 25 }, (_, index) => 28 - index));
  const [, older = ""] = /href="([^"#]+cursor=[^"#]+)"/.exec(first) ?? [];
  const next = (await page(older)).text;
  expect(numbers(next)).toEqual([3, 2, 1]);
  expect(next).not.toContain("cursor=");
  expect((await page(`/sites/${siteId}/deployments?cursor=elsewhere`)).status).toBe(200);
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
