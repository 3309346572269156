import fc from "fast-check";
import { expect, it } from "vitest";
import { printable, redactor } from "../../protocol/redact.ts";

it("leaves nothing of a known secret, in any of the forms in which it may come up", () => {
  const secret = fc
    .string({ minLength: 4, maxLength: 40, unit: fc.constantFrom(...Array.from("abcXYZ019 /+=&?%\"'\\$-_")) })
    .filter((value) => value.trim().length >= 4);
  fc.assert(
    fc.property(secret, fc.string(), fc.string(), (value, before, after) => {
      const redact = redactor([value]);
      const forms = [
        value,
        Buffer.from(value).toString("base64"),
        encodeURIComponent(value),
        JSON.stringify(value),
      ];
      for (const form of forms) expect(redact(`${before}•${form}•${after}`)).toContain("•••");
      expect(redact(`•${value}•`)).not.toContain(value);
    }),
  );
});

it("masks the longer of two secrets that overlap, and each line of one that has several", () => {
  expect(redactor(["token", "token-extended"])("it is token-extended")).toBe("it is •••");
  expect(redactor(["first line\nsecond line"])("said: second line")).toBe("said: •••");
});

it("keeps words that are too short to be secrets", () => {
  expect(redactor(["on"])("the door is on the left")).toBe("the door is on the left");
});

it("keeps colours and takes away what moves a reader's cursor", () => {
  expect(printable("\u001b[32mgreen\u001b[0m")).toBe("\u001b[32mgreen\u001b[0m");
  expect(printable("a\u001b[2J\u001b[1;1Hb\u0007c\u001b]0;title\u0007d\re")).toBe("abcde");
});

it("leaves no rest of two secrets that run into one another", () => {
  expect(redactor(["abcdef", "defghi"])("it is abcdefghi!")).toBe("it is •••!");
  expect(redactor(["abab"])("ababab.")).toBe("•••.");
  expect(redactor(["abcd", "efgh"])("abcdefgh-abcd")).toMatch(/^•+-•••$/);
});

it("finds a secret in base64 wherever it stands in a longer text", () => {
  const redact = redactor(["hunter2-token"]);
  for (const user of ["a", "ab", "abc", "x-access-token"]) {
    const header = Buffer.from(`${user}:hunter2-token`).toString("base64");
    const masked = redact(`Authorization: Basic ${header}`);
    expect(masked).toContain("•••");
    expect(Buffer.from(masked.slice(21).replace(/•+/, ""), "base64").toString()).not.toContain("hunter2");
  }
});
