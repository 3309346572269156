import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import * as z from "zod";
import { request, type Answer } from "./client.ts";

/** What is known of an example beforehand. */
export const Expectation = z.strictObject({
  /** A pattern of the sentence with which it is refused; left out: it comes up. */
  refused: z.string().optional(),
  /** Settings of the site, such as `rootDir`, as POST /sites takes them. */
  settings: z.record(z.string(), z.unknown()).optional(),
  variables: z.record(z.string(), z.string()).optional(),
  /** What is asked of it, and which status it answers with; left out: `/`, and any below 400. */
  path: z.string().startsWith("/").optional(),
  status: z.number().int().optional(),
});
export type Expectation = z.infer<typeof Expectation>;

export type Result = {
  verdict: "up" | "refused as expected" | "failed" | "answers wrongly" | "up, not refused" | "not tried";
  seconds: number;
  sentence: string;
};
export const isAsExpected = ({ verdict }: Result): boolean =>
  verdict === "up" || verdict === "refused as expected";

export type Service = {
  api(method: string, path: string, body?: object): Promise<Answer>;
  pay(invoiceToken: string): Promise<Answer>;
};
type Site = { status: string; url: string; latestDeployment: { error: string | null } | null };

const askEveryMs = 1000;
const longestMs = 40 * 60_000;
const answersWithinMs = 30_000;

/** One request after the other with a session, which may make more of them than a key. */
export async function signIn(local: {
  siteUrl: string;
  baseUrl: string;
  email: string;
  password: string;
}): Promise<Service> {
  const { siteUrl, baseUrl, email, password } = local;
  const headers = { Origin: siteUrl, "Content-Type": "application/json", Accept: "application/json" };
  const response = await fetch(`${siteUrl}/api/auth/sign-in/email`, {
    method: "POST",
    headers,
    body: JSON.stringify({ email, password }),
  });
  if (!response.ok) throw new Error(`The sign-in at ${siteUrl} was answered ${response.status}.`);
  const cookie = response.headers.getSetCookie().map((one) => one.split(";")[0]);
  const send = (method: string, url: string, body?: object) =>
    request(url, {
      method,
      headers: { ...headers, Cookie: cookie.join("; ") },
      ...(body && { body: JSON.stringify(body) }),
    });
  return {
    async api(method, path, body) {
      for (;;) {
        const answer = await send(method, baseUrl + path, body);
        if (answer.status !== 429) return answer;
        await delay(askEveryMs);
      }
    },
    pay: (invoiceToken) => send("POST", `${siteUrl}/invoice/${invoiceToken}/pay`),
  };
}

/** A repository becomes a paid site, is asked once it runs, and is deleted. */
export async function tryExample(
  service: Service,
  {
    name,
    githubUrl,
    expected,
    keep,
  }: { name: string; githubUrl: string; expected: Expectation; keep: boolean },
  signal: AbortSignal,
): Promise<Result> {
  const started = performance.now();
  const ended = (verdict: Result["verdict"], sentence: string): Result => ({
    verdict,
    seconds: Math.round((performance.now() - started) / 100) / 10,
    sentence: sentence.replaceAll(/\s+/g, " ").trim(),
  });
  const created = await service.api("POST", "/sites", {
    name: siteName(name),
    deployType: "github",
    githubUrl,
    port: 3000,
    billingTerm: 1,
    ...expected.settings,
  });
  if (created.status !== 201)
    return ended("not tried", `POST /sites answered ${created.status} ${created.text}`);
  const { siteId, invoiceToken } = JSON.parse(created.text) as { siteId: string; invoiceToken: string };
  try {
    const envVariables = Object.entries(expected.variables ?? {}).map(([key, value]) => ({ key, value }));
    if (envVariables.length > 0) await service.api("PATCH", `/sites/${siteId}`, { envVariables });
    await service.pay(invoiceToken);
    const site = await settled(service, siteId, signal);
    if (site.status === "RUNNING") {
      const { isRight, said } = await asked(site.url, expected, signal);
      if (!isRight) return ended("answers wrongly", said);
      return ended(expected.refused === undefined ? "up" : "up, not refused", said);
    }
    const error = site.latestDeployment?.error ?? `It is ${site.status}.`;
    const isExpected = expected.refused !== undefined && new RegExp(expected.refused).test(error);
    return ended(isExpected ? "refused as expected" : "failed", error);
  } catch (error) {
    return ended("not tried", String(error));
  } finally {
    if (!keep) await service.api("DELETE", `/sites/${siteId}`);
  }
}

const siteName = (name: string): string =>
  `${name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .slice(0, 50)}-${randomBytes(4).toString("hex")}`;

async function settled(service: Service, siteId: string, signal: AbortSignal): Promise<Site> {
  for (const end = performance.now() + longestMs; performance.now() < end;) {
    const { status, text } = await service.api("GET", `/sites/${siteId}`);
    if (status !== 200) throw new Error(`GET /sites/${siteId} answered ${status} ${text}`);
    const site = JSON.parse(text) as Site;
    if (site.status !== "PENDING" && site.status !== "DEPLOYING") return site;
    await delay(askEveryMs, undefined, { signal });
  }
  throw new Error(`It was not deployed within ${longestMs / 60_000} minutes.`);
}

/** Asks until the answer is right, for a while: the first ones may be slow. */
async function asked(
  url: string,
  { path = "/", status }: Expectation,
  signal: AbortSignal,
): Promise<{ isRight: boolean; said: string }> {
  let said = "";
  for (const end = performance.now() + answersWithinMs; performance.now() < end;) {
    const answer = await request(url + path).catch((error: unknown) => ({ status: 0, text: String(error) }));
    said = `GET ${path} answered ${answer.status || answer.text}`;
    if (status === undefined ? answer.status >= 200 && answer.status < 400 : answer.status === status)
      return { isRight: true, said };
    await delay(askEveryMs, undefined, { signal });
  }
  return { isRight: false, said };
}
