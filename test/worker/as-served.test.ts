import { expect, it } from "vitest";
import { asServed } from "../../worker/embedded/as-served.ts";

const request = (headers: Record<string, string>) =>
  new Request("http://berth.example/sites?limit=1", { method: "POST", body: "{}", headers });
const addressOf = (served: Request) => served.headers.get("CF-Connecting-IP");

it("a request without an edge before it comes from this machine", () => {
  expect(addressOf(asServed(request({})))).toBe("127.0.0.1");
  expect(addressOf(asServed(request({ Authorization: "Bearer hst_0x" })))).toBe("127.0.0.1");
});

it("a proxy in front names the client and the scheme, also for requests with a key", async () => {
  const proxied = { "CF-Connecting-IP": "203.0.113.7", "X-Forwarded-Proto": "https" };
  for (const headers of [proxied, { ...proxied, Authorization: "Bearer sk_0x" }]) {
    const served = asServed(request(headers));
    expect([addressOf(served), served.url, served.method, await served.text()]).toEqual([
      "203.0.113.7",
      "https://berth.example/sites?limit=1",
      "POST",
      "{}",
    ]);
  }
});
