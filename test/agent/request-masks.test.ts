import { describe, expect, it } from "vitest";
import { kept, maskPath, maskQuery, maskReferrer } from "../../agent/running/request-masks.ts";
import { computedMs, slowness } from "../support/computed.ts";

const jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl";

describe("the query of a kept request", () => {
  it.each([
    ["token=abc", "token=•••"],
    ["page=2&access_token=abc&sort=asc", "page=2&access_token=•••&sort=asc"],
    ["accessToken=abc;apiKey=1", "accessToken=•••;apiKey=•••"],
    [
      "API-KEY=1&X-Amz-Signature=2&X-Amz-Credential=3",
      "API-KEY=•••&X-Amz-Signature=•••&X-Amz-Credential=•••",
    ],
    [
      "key=1&sig=2&code=3&state=4&password=5&pwd=6",
      "key=•••&sig=•••&code=•••&state=•••&password=•••&pwd=•••",
    ],
    ["user%5Bpassword%5D=1&to%6ben=2", "user%5Bpassword%5D=•••&to%6ben=•••"],
    ["PHPSESSID=1&sid=2&email=a%40b.example", "PHPSESSID=•••&sid=•••&email=•••"],
    [`x=${jwt}`, "x=•••"],
    [jwt, "•••"],
    ["q=sk_live_0123456789abcdef", "q=•••"],
    ["v=8f1b6d0c2a4e5f67890123456789abcdef012345", "v=•••"],
    ["token=a=b&c", "token=•••&c"],
    ["%=1&token=%zz", "%=1&token=•••"],
  ])("is %s and becomes %s", (query, shown) => expect(maskQuery(query)).toBe(shown));

  it.each([
    "q=monkeys+and+keywords",
    "author=ada",
    "page=2&sort=created_at",
    "token=",
    "decode=1&passenger=2",
    "",
    "&&",
  ])("keeps what is no secret: %s", (query) => expect(maskQuery(query)).toBe(query));

  it("takes bounded time, whatever a visitor writes", () => {
    const began = computedMs();
    for (const hostile of ["a".repeat(30_000), "-".repeat(30_000), "a=&".repeat(10_000), "=".repeat(30_000)])
      maskQuery(hostile);
    expect(computedMs() - began).toBeLessThan(500 * slowness());
  });
});

it("a path keeps its ids and loses its keys", () => {
  expect(maskPath("/orders/4cb09d26-d3de-498d-b60e-f9dbfa6fe5d9/a.css")).toBe(
    "/orders/4cb09d26-d3de-498d-b60e-f9dbfa6fe5d9/a.css",
  );
  expect(maskPath(`/reset/${jwt}/now`)).toBe("/reset/•••/now");
});

it("a referrer is the page's address without user, query and fragment", () => {
  expect(maskReferrer("https://ada:secret@example.com/a/b?token=1#x")).toBe("https://example.com/a/b");
});

it("kept text has no control characters, no half characters, and a bounded length", () => {
  expect(kept("\u001b]0;title\u0007Moz\nilla\u0000", 50)).toBe("Moz illa");
  expect(kept("a😀", 2)).toBe("a\ufffd");
});
