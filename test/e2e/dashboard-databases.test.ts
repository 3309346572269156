import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Database } from "../../protocol/api/databases.ts";
import { launchBrowser, signedIn } from "./browser.ts";
import { api, local, until } from "./service.ts";

/** A database on the dashboard, from the first click to the last. */
let browser: Browser;
const gone = async (id: string) => (await api("GET", `/databases/${id}`)).status === 404;
const made: string[] = [];
beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser.close();
  for (const id of made)
    if (!(await gone(id))) {
      await api("DELETE", `/databases/${id}?skipFinalBackup=1`);
      await until(() => gone(id), Boolean);
    }
});

const flows = [
  {
    how: "with a script",
    hasScript: true,
    type: "postgresql",
    write: "CREATE TABLE kept AS SELECT 'what was kept' AS word",
    lose: "DROP TABLE kept",
    read: "SELECT word FROM kept",
    wide: `SELECT ${Array.from({ length: 12 }, (_, index) => `'what is wide' AS column_${index}`).join(", ")}`,
    fails: "SELECT word FROM nowhere",
    reason: /nowhere/,
    scheme: "postgresql://",
  },
  {
    how: "without a script",
    hasScript: false,
    type: "redis",
    write: 'SET kept "what was kept"',
    lose: "DEL kept",
    read: "GET kept",
    wide: `MGET${" a-key-with-a-long-name".repeat(12)}`,
    fails: "NONSENSE",
    reason: /NONSENSE/i,
    scheme: "redis://",
  },
] as const;

describe.each(flows)("a $type database, $how,", (flow) => {
  const name = `flow-${flow.hasScript ? "script" : "plain"}-${process.pid}`;
  let page: Page;
  let here: string;
  beforeAll(async () => {
    ({ page } = await signedIn(browser, { javaScriptEnabled: flow.hasScript }));
  });

  const open = (tab: string) => page.goto(`${local.siteUrl}${here}${tab}`);
  /** What the page shows by itself with a script, and after a reload without one. */
  const comes = async (selector: string, text: string): Promise<void> => {
    const place = page.locator(selector, { hasText: text }).first();
    if (flow.hasScript) return place.waitFor({ timeout: 120_000 });
    await until(async () => {
      await page.reload();
      return place.isVisible();
    }, Boolean);
  };
  const said = (text: string) => page.locator("main [data-flash]", { hasText: text }).waitFor();
  const write = async (statement: string): Promise<void> => {
    await open("/data");
    await page.fill("#form-query [name=statement]", statement);
    await page.click('#form-query button:has-text("Run and write")');
    await page.fill("#form-write [name=confirm]", name);
    await page.click('#form-write button:text-is("Run it")');
    await said("It was run");
  };
  const answer = async (statement: string): Promise<string> => {
    await open("/data");
    await page.fill("#form-query [name=statement]", statement);
    await page.click('#form-query button:has-text("reading only")');
    return page
      .locator("main .result, #form-query [data-reason], #form-query [role=alert]")
      .first()
      .innerText();
  };

  it("is refused with what was typed kept, then created, paid and watched until it serves", async () => {
    await page.goto(`${local.siteUrl}/databases/new`);
    await page.check(`main [name=type][value=${flow.type}]`);
    await page.fill("main [name=name]", "Not a name");
    await page.click("#form-create button[type=submit]");
    await page.locator("[name=name][aria-invalid=true]").waitFor();
    expect(await page.inputValue("main [name=name]")).toBe("Not a name");
    expect(await page.isChecked(`main [name=type][value=${flow.type}]`)).toBe(true);
    await page.fill("main [name=name]", name);
    await page.click("#form-create button[type=submit]");
    await page.click('main button:has-text("Pay $")');
    await page.click('button:has-text("Test payment: pay")');
    await page.waitForURL(/\/databases\/db_/);
    here = new URL(page.url()).pathname;
    made.push(here.replace("/databases/", ""));
    await comes("#database-head h1 .dot", "In service");
  });

  it("shows its address, and its password only when asked", async () => {
    await open("/connect");
    const { password } = (await api<{ password: string }>("GET", `${here}/credentials`)).body;
    expect(await page.content()).not.toContain(password);
    await page.click('a:text-is("Reveal the password")');
    await page.locator("main code", { hasText: flow.scheme }).filter({ hasText: password }).waitFor();
    await page.click('a:text-is("Hide the password")');
    await page.locator("main", { hasNotText: password }).waitFor();
  });

  it("is written to once that is confirmed, and read", async () => {
    await write(flow.write);
    expect(await answer(flow.read)).toContain("what was kept");
    expect(await answer(flow.fails)).toMatch(flow.reason);
    expect(await page.inputValue("#form-query [name=statement]")).toBe(flow.fails);
  });

  it("keeps wide answers and long statements within the screen of a phone", async () => {
    const overflow = () =>
      page.evaluate<number>("document.documentElement.scrollWidth - document.documentElement.clientWidth");
    const before = page.viewportSize() ?? { width: 1280, height: 720 };
    await page.setViewportSize({ width: 390, height: 844 });
    expect(await answer(flow.wide)).not.toBe("");
    expect(await overflow()).toBe(0);
    await page.click('#form-query button:has-text("Run and write")');
    await page.locator("#form-write").waitFor();
    expect(await overflow()).toBe(0);
    await page.setViewportSize(before);
  });

  it("is backed up, loses data, and has it back from the backup", async () => {
    await open("/backups");
    await page.click('button:text-is("Back up now")');
    await said("A backup is being made");
    await comes("#backups tbody tr .dot.good", "Verified");
    await write(flow.lose);
    expect(await answer(flow.read)).not.toContain("what was kept");
    await open("/backups");
    const row = page.locator("#backups tbody tr", { hasText: "requested" }).first();
    await row.locator('summary:has-text("Restore")').click();
    await row.locator("[name=confirm]").fill("another");
    await row.locator('button:text-is("Replace its data")').click();
    await page.locator("main [role=alert]", { hasText: "Nothing was restored" }).waitFor();
    await row.locator("[name=confirm]").fill(name);
    await row.locator('button:text-is("Replace its data")').click();
    await said("The backup is being restored.");
    await until(
      async () => (await api<Database>("GET", here)).body.restoring,
      (restoring) => restoring === null,
    );
    await until(
      () => answer(flow.read),
      (text) => text.includes("what was kept"),
    );
  });

  it("is deleted once its name is typed", async () => {
    await open("/settings");
    await page.locator("main summary", { hasText: `Delete ${name}` }).click();
    await page.fill("#form-delete [name=confirm]", "another");
    await page.click('#form-delete button:text-is("Delete the database")');
    await page.locator("#form-delete [name=confirm][aria-invalid=true]").waitFor();
    await page.check("#form-delete [name=skipFinalBackup]");
    await page.fill("#form-delete [name=confirm]", name);
    await page.click('#form-delete button:text-is("Delete the database")');
    await said(`${name} is being deleted.`);
    await until(() => gone(here.replace("/databases/", "")), Boolean);
    await page.goto(local.siteUrl + here);
    await page.locator("h1", { hasText: /not found|no such/i }).waitFor();
  });
});
