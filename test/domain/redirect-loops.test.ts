import { expect, it } from "vitest";
import { circularRedirect } from "../../worker/domain/redirect-loops.ts";

const own = ["shop.example", "www.shop.example"];
const prefix = "prefix" as const;

it.each([
  [0, [{ from: "/a", to: "/a" }]],
  [
    0,
    [
      { from: "/a", to: "/b" },
      { from: "/b", to: "/c?x" },
      { from: "/c", to: "/a" },
    ],
  ],
  [0, [{ from: "/a", match: prefix, to: "/a/b" }]],
  [0, [{ from: "/", match: prefix, to: "/new" }]],
  [0, [{ from: "/a", to: "https://www.shop.example/a" }]],
  [
    0,
    [
      { from: "/x", to: "/" },
      { from: "/", to: "/x" },
    ],
  ],
  // Only what lies deeper goes in a circle.
  [
    0,
    [
      { from: "/a", match: prefix, to: "/b" },
      { from: "/b/a", match: prefix, to: "/a/a" },
    ],
  ],
  [
    1,
    [
      { from: "/a", to: "/end" },
      { from: "/a/a", match: prefix, to: "/a/a" },
    ],
  ],
  [
    1,
    [
      { from: "/x", to: "/y" },
      { from: "/a", match: prefix, to: "https://shop.example/a" },
    ],
  ],
])("the redirect %i of these leads in a circle: %j", (index, redirects) => {
  expect(circularRedirect(redirects, own)).toBe(index);
});

it.each([
  [
    [
      { from: "/a", to: "/b" },
      { from: "/b", to: "/c" },
    ],
  ],
  [[{ from: "/a", to: "https://elsewhere.example/a" }]],
  [[{ from: "/", match: prefix, to: "https://elsewhere.example" }]],
  [[{ from: "/old", match: prefix, to: "/new" }]],
  [[{ from: "/ab", to: "/ab/c" }]],
  [
    [
      { from: "/a", match: prefix, to: "/b" },
      { from: "/b/a/a/b", to: "/a" },
    ],
  ],
  [
    [
      { from: "/a", to: "/abc" },
      { from: "/ab", match: prefix, to: "/z" },
    ],
  ],
  [[]],
])("these lead to an end: %j", (redirects) => {
  expect(circularRedirect(redirects, own)).toBeNull();
});
