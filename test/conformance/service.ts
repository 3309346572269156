import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readState, stateDirectory } from "../support/embedded-service.ts";

/**
 * Berth from outside: HTTP and nothing else. BERTH_URL points at any deployment whose sign-up is open and whose payments
 * are the test processor's; without it, the service that `npm test` started.
 */
export const siteUrl = process.env["BERTH_URL"]?.replace(/\/$/, "") ?? embedded().siteUrl;

function embedded() {
  if (!stateDirectory) throw new Error("Set BERTH_URL, or run these tests with npm test");
  return readState<{ siteUrl: string; email: string; password: string }>("local.json");
}

/** How the operator signs in; null: this deployment's is not told. */
function operatorLogin(): { email: string; password: string } | null {
  if (process.env["BERTH_URL"] === undefined) return embedded();
  const [email, word] = [process.env["BERTH_OPERATOR_EMAIL"], process.env["BERTH_OPERATOR_PASSWORD"]];
  return email !== undefined && word !== undefined ? { email, password: word } : null;
}

export const baseUrl = `${siteUrl}/api/v1`;
const isLocal = new URL(siteUrl).hostname === "127.0.0.1";

/** An API key, the cookie of a session, or nothing. */
export type Credential = { key: string } | { cookie: string } | null;
type Sent = {
  body?: unknown;
  /** Sent as it is, in place of `body`. */
  text?: string;
  headers?: Record<string, string>;
  /** A client address of the test's own, where no edge sets it. */
  address?: string;
};
export type Answer<Body = Record<string, unknown>> = { status: number; headers: Headers; body: Body };

const addressHeader = (address: string | undefined) =>
  isLocal && address !== undefined ? { "CF-Connecting-IP": address } : {};

/** One request; `path` is below {base_url} unless it is a whole address. Answers the JSON body. */
export async function send<Body = Record<string, unknown>>(
  credential: Credential,
  method: string,
  path: string,
  { body, text, headers, address }: Sent = {},
): Promise<Answer<Body>> {
  const payload = text ?? (body === undefined ? undefined : JSON.stringify(body));
  const response = await fetch(path.startsWith("http") ? path : baseUrl + path, {
    method,
    redirect: "manual",
    headers: {
      Accept: "application/json",
      ...(credential && "key" in credential && { Authorization: `Bearer ${credential.key}` }),
      ...(credential && "cookie" in credential && { Cookie: credential.cookie, Origin: siteUrl }),
      ...(payload !== undefined && { "Content-Type": "application/json" }),
      ...addressHeader(address),
      ...headers,
    },
    ...(payload !== undefined && { body: payload }),
  });
  const answered = await response.text();
  const isJson = answered !== "" && response.headers.get("Content-Type")?.startsWith("application/json");
  return {
    status: response.status,
    headers: response.headers,
    body: (isJson ? JSON.parse(answered) : { text: answered }) as Body,
  };
}

let made = 0;
export const uniqueName = (prefix: string): string => `${prefix}-${Date.now().toString(36)}-${++made}`;
/** An address of TEST-NET-2 (RFC 5737) or of the range for benchmarks (RFC 2544). */
export const newAddress = (): string =>
  `198.18.${Math.floor(Math.random() * 256)}.${Math.floor(Math.random() * 256)}`;

export type Person = {
  email: string;
  session: { cookie: string };
  /** A key nobody has used: each may make 60 requests a minute. */
  newKey(): Promise<{ key: string; id: string }>;
};

export const password = "a password for the test";

const sessionOf = ({ headers }: Answer) => ({
  cookie: headers
    .getSetCookie()
    .map((one) => one.split(";")[0])
    .join("; "),
});

/** A session of whoever runs the deployment, or null where nobody told who that is. */
export async function operator(): Promise<{ cookie: string } | null> {
  const login = operatorLogin();
  if (login === null) return null;
  const answer = await send(null, "POST", `${siteUrl}/api/auth/sign-in/email`, {
    body: { email: login.email, password: login.password },
    headers: { Origin: siteUrl },
    address: newAddress(),
  });
  if (answer.status !== 200)
    throw new Error(`the operator's sign-in answered ${answer.status}: ${JSON.stringify(answer.body)}`);
  return sessionOf(answer);
}

const enter = async (path: string, email: string): Promise<Answer> => {
  const answer = await send(null, "POST", `${siteUrl}/api/auth/${path}`, {
    body: { name: "Conformance", email, password },
    headers: { Origin: siteUrl },
    address: newAddress(),
  });
  if (answer.status === 200) return answer;
  throw new Error(`${path} answered ${answer.status}: ${JSON.stringify(answer.body)}`);
};

type Mail = { to: string[]; text: string };

/** The mailed link that confirms the address, where the embedded mail service keeps mails as files. */
function mailedLink(email: string): string | undefined {
  if (process.env["BERTH_URL"] !== undefined || stateDirectory === undefined)
    throw new Error("This deployment confirms addresses by mail: ask one that sends none");
  const folder = join(stateDirectory, "mail");
  for (const file of readdirSync(folder).toReversed()) {
    const text = readFileSync(join(folder, file), "utf8");
    // One that is just being written is read the next time.
    if (!text.endsWith("}\n") || !text.includes(email)) continue;
    const mail = JSON.parse(text) as Mail;
    const [link] = /http\S+confirm-address\S+/.exec(mail.text) ?? [];
    if (mail.to[0] === email && link !== undefined) return link;
  }
  return undefined;
}

/** Somebody who signed up, and confirmed their address where that is asked for. */
export async function person(): Promise<Person> {
  const email = `${uniqueName("person")}@example.com`;
  let session = sessionOf(await enter("sign-up/email", email));
  if (session.cookie === "") {
    const link = await until(
      async () => mailedLink(email),
      (found) => found !== undefined,
    );
    await send(null, "POST", `${siteUrl}/confirm-address`, {
      text: new URL(link ?? "").searchParams.toString(),
      headers: { Origin: siteUrl, "Content-Type": "application/x-www-form-urlencoded" },
      address: newAddress(),
    });
    session = sessionOf(await enter("sign-in/email", email));
  }
  return {
    email,
    session,
    async newKey() {
      const { status, body } = await send<{ key: string; id: string }>(session, "POST", "/keys", {
        body: { name: uniqueName("key") },
      });
      if (status !== 201) throw new Error(`POST /keys answered ${status}: ${JSON.stringify(body)}`);
      return { key: body.key, id: body.id };
    },
  };
}

/** Names a Git host that does not exist: deployments of it fail soon and cost nothing. */
export const siteInput = (overrides: Record<string, unknown> = {}) => ({
  name: uniqueName("conf"),
  deployType: "github",
  githubUrl: "git.invalid/owner/repo",
  branch: "main",
  port: 3000,
  buildCommand: "npm run build",
  startCommand: "npm start",
  billingTerm: 1,
  ...overrides,
});

export type Created = { siteId: string; invoiceId: string; invoiceToken: string };
export type Site = { id: string; status: string; latestDeployment: { id: string; status: string } | null };

const sites: { credential: Credential; id: string }[] = [];

export async function createSite(credential: Credential): Promise<Created> {
  const { status, body } = await send<Created>(credential, "POST", "/sites", { body: siteInput() });
  if (status !== 201) throw new Error(`create answered ${status}: ${JSON.stringify(body)}`);
  sites.push({ credential, id: body.siteId });
  return body;
}

/** Everything the tests of this file made. */
export async function removeSites(): Promise<void> {
  for (const { credential, id } of sites.splice(0)) await send(credential, "DELETE", `/sites/${id}`);
}

export const pay = (invoiceToken: string): Promise<Answer> =>
  send(null, "POST", `${siteUrl}/invoice/${invoiceToken}/pay`);

/** Asks until the answer is as wanted. */
export async function until<T>(
  ask: () => Promise<T>,
  wanted: (value: T) => boolean,
  timeoutMs = 60_000,
): Promise<T> {
  for (const end = Date.now() + timeoutMs; ;) {
    const value = await ask();
    if (wanted(value)) return value;
    if (Date.now() > end) throw new Error(`Not as wanted in time: ${JSON.stringify(value)}`);
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}
