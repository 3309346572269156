import fc from "fast-check";
import { expect, it } from "vitest";
import { ownPath } from "../../worker/domain/own-path.ts";

it("a path of the service is kept with its query", () => {
  for (const path of ["/", "/sites/site_1?tab=logs", "/device?code=BCDF-GHJK", "/confirm/pend_1"])
    expect(ownPath(path)).toBe(path);
});

it.each([
  "",
  "sites",
  "sites/site_1",
  "/sites/a b",
  "/sites/ä",
  "//evil.example",
  "/\\evil.example",
  "\\/evil.example",
  "https://evil.example/",
  "javascript:alert(1)",
  "/\t/evil.example",
  "/.//evil.example",
  "/..//evil.example",
  " /",
])("%j leads to the first page", (text) => expect(ownPath(text)).toBe("/"));

it("whatever is given, the browser stays at the service", () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom("/", "\\", ".", "@", "a", ":", "%", "?") })),
      (text) => {
        expect(new URL(ownPath(text), "https://berth.example/sign-in").origin).toBe("https://berth.example");
      },
    ),
  );
});
