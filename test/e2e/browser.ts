import { mkdtempSync, writeFileSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { chromium, type Browser, type BrowserContext, type Page } from "playwright-core";
import { local, mailedLink } from "./service.ts";

/**
 * The browser that every test of pages uses: Chromium without its windows, which takes half the work. Hooks close nothing but this: its
 * end closes all windows, while closing one by itself waits for the browser without a limit.
 */
export async function launchBrowser(...args: string[]): Promise<Browser> {
  const options = {
    executablePath: unawareOfNetworks("/usr/lib/chromium/chromium-headless-shell"),
    timeout: 120_000,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      ...args,
    ],
  };
  for (let attempt = 1; ; attempt++)
    try {
      return await chromium.launch(options);
    } catch (error) {
      // bwrap mounts anew whatever is mounted, which Docker may have just unmounted.
      if (attempt === 5 || !String(error).includes("bwrap: Can't bind mount")) throw error;
    }
}

/**
 * A program that runs this one without letting it open a socket of AF_NETLINK: by it, this browser learns of each network that Docker makes,
 * and breaks off all that it loads (ERR_NETWORK_CHANGED).
 */
function unawareOfNetworks(program: string): string {
  const file = join(mkdtempSync(join(tmpdir(), "berth-browser-")), "browser");
  const [architecture, socketCall] = process.arch === "arm64" ? [0xc00000b7, 198] : [0xc000003e, 41];
  // Classic BPF (seccomp(2)): code, jumps if true and if false, operand. Addresses are those of struct seccomp_data.
  const filter: [code: number, yes: number, no: number, operand: number][] = [
    [0x20, 0, 0, 4],
    [0x15, 0, 5, architecture],
    [0x20, 0, 0, 0],
    [0x15, 0, 3, socketCall],
    [0x20, 0, 0, 16],
    [0x15, 0, 1, 16],
    [0x06, 0, 0, 0x0005_0000 | constants.errno.EAFNOSUPPORT],
    [0x06, 0, 0, 0x7fff_0000],
  ];
  const bytes = Buffer.alloc(8 * filter.length);
  for (const [at, [code, yes, no, operand]] of filter.entries()) {
    bytes.writeUInt16LE(code, 8 * at);
    bytes.writeUInt8(yes, 8 * at + 2);
    bytes.writeUInt8(no, 8 * at + 3);
    bytes.writeUInt32LE(operand, 8 * at + 4);
  }
  writeFileSync(`${file}.filter`, bytes);
  writeFileSync(file, `#!/bin/sh\nexec bwrap --dev-bind / / --seccomp 9 -- ${program} "$@" 9<"$0.filter"\n`, {
    mode: 0o700,
  });
  return file;
}

/** Without a script, a page with a log leads on to its lines at once. To leave it before would cut off one of the two. */
export const atPlainLog = (page: Page): Promise<void> =>
  page.waitForURL(/[?&]plain=1/, { waitUntil: "commit", timeout: 60_000 });

type Options = NonNullable<Parameters<Browser["newContext"]>[0]>;

/** Fills in the form of a page that asks who somebody is. Waits out the limit of an address, which all tests share. */
export async function fillSignIn(page: Page, { email, password }: { email: string; password: string }) {
  for (;;) {
    await page.fill("main [name=email]", email);
    await page.fill("main [name=password]", password);
    const [answer] = await Promise.all([
      page.waitForResponse((response) => response.request().method() === "POST"),
      page.click('main button:has-text("Sign in")'),
    ]);
    if (answer.status() !== 429) return;
    await delay(Number(answer.headers()["retry-after"] ?? 1) * 1000);
    // The page that says so has no form.
    await page.goBack();
  }
}

/** A window of somebody who has signed in through the page, by default the operator of the service. */
export async function signedIn(
  browser: Browser,
  options: Options = {},
  person: { email: string; password: string } = local,
  siteUrl = local.siteUrl,
): Promise<{ context: BrowserContext; page: Page }> {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  await page.goto(`${siteUrl}/sign-in`);
  await fillSignIn(page, person);
  await page.waitForURL((url) => url.pathname !== "/sign-in");
  return { context, page };
}

/** Somebody who has just signed up and confirmed their address. */
export async function newPerson(
  browser: Browser,
  name: string,
): Promise<{ email: string; password: string }> {
  const person = { email: `${name.toLowerCase()}-${process.pid}@example.com`, password: "a long password" };
  const page = await browser.newPage();
  await page.goto(`${local.siteUrl}/sign-up`);
  await page.fill("main [name=name]", name);
  await page.fill("main [name=email]", person.email);
  await page.fill("main [name=password]", person.password);
  await page.click('main button:has-text("Create account")');
  await page.goto(await mailedLink(person.email, /https?:\S+confirm-address\S+/));
  await page.click('main button:has-text("Confirm")');
  return person;
}
