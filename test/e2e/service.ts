import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { imageRepository } from "../../scripts/lib/engine-objects.ts";
import type { Deployment } from "../../protocol/api/deployments.ts";
import type { Site } from "../../protocol/api/sites.ts";
import * as embedded from "../support/embedded-service.ts";

/** The service that this file has for itself. */
export const stateDirectory = embedded.stateDirectory ?? "";
export const gitHost = embedded.readGitHost();
export const local = embedded.readState<{
  siteUrl: string;
  baseUrl: string;
  apiKey: string;
  email: string;
  password: string;
  sampleSite: { id: string; url: string };
}>("local.json");

type Answer = { status: number; headers: http.IncomingHttpHeaders; text: string };

/** One HTTP request that dials the loopback address and names the host, as `*.localhost` resolves nowhere. */
export function request(
  url: string,
  options: { method?: string; headers?: Record<string, string>; body?: string; agent?: http.Agent } = {},
): Promise<Answer> {
  const { hostname, port, pathname, search, host } = new URL(url);
  const address = hostname.endsWith("localhost") ? "127.0.0.1" : hostname;
  return new Promise((resolve, reject) => {
    const outgoing = http.request(
      {
        host: address,
        port,
        path: pathname + search,
        method: options.method ?? "GET",
        headers: { ...options.headers, Host: host },
        // A connection of its own: one that is kept may have ended unheard while a test waited for a program.
        agent: options.agent ?? false,
        timeout: 30_000,
      },
      (response) => {
        let text = "";
        response
          .setEncoding("utf8")
          .on("data", (chunk: string) => (text += chunk))
          .on("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }))
          .on("error", reject);
      },
    );
    outgoing.on("timeout", () => outgoing.destroy(new Error(`No answer from ${url}`))).on("error", reject);
    outgoing.end(options.body);
  });
}

type Account = { siteUrl: string; baseUrl: string; email: string; password: string };

/** The cookies of a new session. Waits out the limit of an address, which all tests share. */
export async function signIn({ email, password, siteUrl }: Account): Promise<string> {
  for (;;) {
    const answer = await request(`${siteUrl}/api/auth/sign-in/email`, {
      method: "POST",
      headers: { Origin: siteUrl, "Content-Type": "application/json" },
      body: JSON.stringify({ email, password }),
    });
    if (answer.status === 200)
      return (answer.headers["set-cookie"] ?? []).map((one) => one.split(";")[0]).join("; ");
    if (answer.status !== 429) throw new Error(`sign-in answered ${answer.status}: ${answer.text}`);
    await delay(Number(answer.headers["retry-after"] ?? 1) * 1000);
  }
}

/**
 * Requests to the public API in the account's session: a key may make one request a second, a session ten. Waits out the session's
 * limit instead of failing on it.
 */
export function apiOf(account: Account) {
  let session: Promise<string> | undefined;
  return async <Body = Record<string, unknown>>(
    method: string,
    path: string,
    body?: unknown,
  ): Promise<{ status: number; body: Body }> => {
    for (;;) {
      const response = await request(account.baseUrl + path, {
        method,
        headers: {
          Origin: account.siteUrl,
          Cookie: await (session ??= signIn(account)),
          ...(body !== undefined && { "Content-Type": "application/json" }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      if (response.status !== 429)
        return { status: response.status, body: JSON.parse(response.text) as Body };
      await delay(Number(response.headers["retry-after"] ?? 1) * 1000);
    }
  };
}
export const api = apiOf(local);

/** Asks until the answer is as wanted; fails with the last answer after `timeoutMs`. */
export async function until<T>(
  ask: () => Promise<T> | T,
  wanted: (value: T) => boolean,
  timeoutMs = 120_000,
): Promise<T> {
  const end = Date.now() + timeoutMs;
  for (;;) {
    const value = await ask();
    if (wanted(value)) return value;
    if (Date.now() > end)
      throw new Error(`Not as wanted after ${timeoutMs} ms: ${JSON.stringify(value).slice(0, 1000)}`);
    await delay(300);
  }
}

/** The first such link in the mails to this address. */
export async function mailedLink(email: string, pattern: RegExp): Promise<string> {
  const folder = join(stateDirectory, "mail");
  const mails = () =>
    readdirSync(folder).map(
      (name) => JSON.parse(readFileSync(join(folder, name), "utf8")) as { to: string[]; text: string },
    );
  const links = await until(
    () => mails().flatMap(({ to, text }) => (to[0] === email ? (pattern.exec(text) ?? []) : [])),
    (found) => found.length > 0,
  );
  return links[0] ?? "";
}

let made = 0;
const uniqueName = (prefix: string) => `${prefix}-${process.pid}-${++made}`;

export type Files = Record<string, string>;

/** A repository on the local Git server. */
export class Repository {
  readonly name: string;
  readonly address: string;
  readonly directory: string;
  constructor(files: Files, prepare?: (directory: string) => void) {
    this.name = uniqueName("repo");
    this.address = `${gitHost}/e2e/${this.name}.git`;
    this.directory = mkdtempSync(join(stateDirectory, "work-"));
    const bare = join(stateDirectory, "git", "e2e", `${this.name}.git`);
    mkdirSync(dirname(bare), { recursive: true });
    git("/", "init", "--quiet", "--bare", "--initial-branch=main", bare);
    git(this.directory, "init", "--quiet", "--initial-branch=main");
    git(this.directory, "remote", "add", "origin", bare);
    prepare?.(this.directory);
    this.commit(files, "First");
  }

  /** Adds the files in one commit and publishes it; answers the commit. */
  commit(files: Files, message: string): string {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(this.directory, path)), { recursive: true });
      writeFileSync(join(this.directory, path), text);
    }
    git(this.directory, "add", "--all");
    git(
      this.directory,
      "-c",
      "user.name=Test",
      "-c",
      "user.email=test@example.com",
      "commit",
      "--quiet",
      "-m",
      message,
    );
    git(this.directory, "push", "--quiet", "origin", "main");
    return git(this.directory, "rev-parse", "HEAD").trim();
  }

  remove(): void {
    rmSync(this.directory, { recursive: true, force: true });
  }
}

function git(cwd: string, ...args: string[]): string {
  return execFileSync("git", args, {
    cwd,
    encoding: "utf8",
    env: { ...process.env, GIT_CONFIG_GLOBAL: "/dev/null" },
  });
}

export type Created = { siteId: string; invoiceToken: string; invoiceId: string };

export async function createSite(input: Record<string, unknown>): Promise<Created> {
  const { status, body } = await api<Created>("POST", "/sites", {
    name: uniqueName("e2e"),
    deployType: "github",
    billingTerm: 1,
    ...input,
  });
  if (status !== 201) throw new Error(`create answered ${status}: ${JSON.stringify(body)}`);
  return body;
}

export const pay = (invoiceToken: string): Promise<Answer> =>
  request(`${local.siteUrl}/invoice/${invoiceToken}/pay`, {
    method: "POST",
    headers: { Accept: "application/json" },
  });

export const site = async (id: string): Promise<Site> => (await api<Site>("GET", `/sites/${id}`)).body;

/** Created, paid and settled: RUNNING or FAILED. */
export async function launch(input: Record<string, unknown>): Promise<Site> {
  const { siteId, invoiceToken } = await createSite(input);
  await pay(invoiceToken);
  return settled(siteId);
}

export const settled = (siteId: string): Promise<Site> =>
  until(
    () => site(siteId),
    ({ status }) => status !== "DEPLOYING" && status !== "PENDING",
    300_000,
  );

/** Asks for a deployment and waits for its end. */
export async function redeploy(siteId: string): Promise<Deployment> {
  const { body } = await api<{ deploymentId: string }>("PATCH", `/sites/${siteId}`, { action: "deploy" });
  return ended(body.deploymentId);
}

export const ended = async (deploymentId: string): Promise<Deployment> =>
  until(
    async () => (await api<Deployment>("GET", `/deployments/${deploymentId}`)).body,
    ({ finishedAt }) => finishedAt !== null,
    300_000,
  );

/** Deletes the site and waits until it is gone. */
export async function remove(siteId: string): Promise<void> {
  await api("DELETE", `/sites/${siteId}`);
  await until(
    async () => (await api("GET", `/sites/${siteId}`)).status,
    (status) => status === 404,
  );
}

export const { hostToken } = embedded.readState<{ hostToken: string }>("secrets.json");

/** Everything on the engine that carries this site's label, or the name its host gives the site's images. */
export function leftovers(siteId: string): string[] {
  const list = (...args: string[]) =>
    execFileSync("docker", args, { encoding: "utf8" }).split("\n").filter(Boolean);
  return [
    ...list(
      "ps",
      "--all",
      "--filter",
      `label=berth.site=${siteId}`,
      "--format",
      "container {{.Names}} {{.Status}}",
    ),
    ...list("images", "--format", "image {{.Repository}}:{{.Tag}}").filter((name) =>
      name.startsWith(`image ${imageRepository(hostToken, siteId)}:`),
    ),
    ...list("images", "--filter", `label=berth.site=${siteId}`, "--format", "image {{.ID}}"),
    ...list("volume", "ls", "--filter", `label=berth.site=${siteId}`, "--format", "volume {{.Name}}"),
  ];
}

/** A server without dependencies that answers its version, with its own Dockerfile. */
export const plainServer = (version: string): Files => ({
  Dockerfile: `FROM node:24-bookworm-slim\nWORKDIR /app\nCOPY server.js .\nUSER node\nCMD ["node", "server.js"]\n`,
  "server.js": serverSource(version),
});

export const serverSource = (version: string): string =>
  `require("node:http").createServer((q, s) => s.end("version ${version}")).listen(process.env.PORT || 3000);\n`;
