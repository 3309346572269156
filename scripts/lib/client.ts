import http from "node:http";
import { setTimeout as delay } from "node:timers/promises";

export type Answer = { status: number; text: string };

/**
 * Sends one request, on its own connection or one of the agent's. Names below localhost are dialled on the loopback
 * address, because not every resolver knows them.
 */
export function request(
  url: string,
  options: {
    method?: string;
    headers?: Record<string, string>;
    body?: string;
    agent?: http.Agent;
    timeoutMs?: number;
  } = {},
): Promise<Answer> {
  const { hostname, port, pathname, search, host } = new URL(url);
  return new Promise((resolve, reject) => {
    const outgoing = http.request(
      {
        host: hostname.endsWith("localhost") ? "127.0.0.1" : hostname,
        port,
        path: pathname + search,
        method: options.method ?? "GET",
        headers: { ...options.headers, Host: host },
        agent: options.agent ?? false,
        timeout: options.timeoutMs ?? 60_000,
      },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
        response.on("end", () => resolve({ status: response.statusCode ?? 0, text })).on("error", reject);
      },
    );
    outgoing.on("timeout", () => outgoing.destroy(new Error(`No answer from ${url}`))).on("error", reject);
    outgoing.end(options.body);
  });
}

/** Sends and receives JSON with a bearer token. @throws if the status is not one of `expected` */
export async function call<Body>(
  method: string,
  url: string,
  token: string,
  body?: unknown,
  expected = [200, 201, 202],
): Promise<{ status: number; body: Body }> {
  const answer = await request(url, {
    method,
    headers: {
      Authorization: `Bearer ${token}`,
      Accept: "application/json",
      ...(body !== undefined && { "Content-Type": "application/json" }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  if (!expected.includes(answer.status))
    throw new Error(`${method} ${url} answered ${answer.status}: ${answer.text.slice(0, 500)}`);
  return { status: answer.status, body: JSON.parse(answer.text) as Body };
}

/** Polls until the condition holds. */
export async function until(holds: () => Promise<boolean>, what: string, timeoutMs: number): Promise<void> {
  for (const end = Date.now() + timeoutMs; ;) {
    if (await holds().catch(() => false)) return;
    if (Date.now() > end) throw new Error(`${what}: not within ${timeoutMs / 1000} s`);
    await delay(100);
  }
}
