import http from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { isAsExpected, tryExample, type Expectation, type Service } from "../../scripts/lib/try-example.ts";

/** A site that answers 200 at / and 404 elsewhere. */
const app = http.createServer(({ url }, response) => response.writeHead(url === "/" ? 200 : 404).end());
beforeAll(() => new Promise<void>((resolve) => void app.listen(0, "127.0.0.1", resolve)));
afterAll(() => void app.close());

/** An API whose site ends so. */
function serviceOf(status: string, error: string | null = null) {
  const asked: string[] = [];
  const answer = (body: object, code = 200) => Promise.resolve({ status: code, text: JSON.stringify(body) });
  const url = `http://127.0.0.1:${(app.address() as AddressInfo).port}`;
  const service: Service = {
    api(method, path) {
      asked.push(`${method} ${path}`);
      if (method === "POST") return answer({ siteId: "site_1", invoiceToken: "inv_1" }, 201);
      return answer({ status, url, latestDeployment: { error } });
    },
    pay: (token) => (asked.push(`pay ${token}`), answer({})),
  };
  return { service, asked };
}

it.each([
  ["RUNNING", null, {}, "up"],
  ["RUNNING", null, { status: 404, path: "/none" }, "up"],
  ["RUNNING", null, { refused: "no app" }, "up, not refused"],
  ["FAILED", "Found no app.", {}, "failed"],
  ["FAILED", "Found no app.", { refused: "no app" }, "refused as expected"],
  ["FAILED", "Found no app.", { refused: "Rust" }, "failed"],
] as [string, string | null, Expectation, string][])(
  "an example whose site is %s (%s) where %j is expected: %s",
  async (status, error, expected, verdict) => {
    const { service, asked } = serviceOf(status, error);
    const example = { name: "A_b", githubUrl: "127.0.0.1:1/a/b.git", expected, keep: false };
    const result = await tryExample(service, example, new AbortController().signal);
    expect(result).toMatchObject({ verdict, sentence: error ?? expect.stringMatching(/^GET \S+ answered/) });
    expect(isAsExpected(result)).toBe(verdict === "up" || verdict === "refused as expected");
    expect(asked.filter((one) => !one.startsWith("GET"))).toEqual([
      "POST /sites",
      "pay inv_1",
      "DELETE /sites/site_1",
    ]);
  },
);

it("an example whose site is refused is told with the answer, and is not deleted", async () => {
  const { service } = serviceOf("RUNNING");
  service.api = () => Promise.resolve({ status: 402, text: '{"error":"payment_required"}' });
  const example = { name: "a", githubUrl: "x", expected: {}, keep: false };
  expect(await tryExample(service, example, new AbortController().signal)).toMatchObject({
    verdict: "not tried",
    sentence: 'POST /sites answered 402 {"error":"payment_required"}',
  });
});
