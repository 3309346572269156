import fc from "fast-check";
import { expect, it } from "vitest";
import { gitSecrets } from "../../protocol/git-token.ts";
import { plain, printable, quotable, redactor } from "../../protocol/redact.ts";
import { computedMs } from "../support/computed.ts";

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

it("masks the 200 longest lines of a secret, which say most of it", () => {
  const lines = Array.from({ length: 201 }, (_, index) => `${index}`.padStart(5 + index, "-"));
  const redact = redactor([lines.toReversed().join("\n")]);
  for (const line of lines.slice(1)) expect(redact(`said ${line}`)).toBe("said •••");
  expect(redact(`said ${lines[0]}`)).toBe(`said ${lines[0]}`);
});

it("keeps words that are too short to be secrets", () => {
  expect(redactor(["on"])("the door is on the left")).toBe("the door is on the left");
  expect(redactor(["hunter2"])("unter2 is no hunter")).toBe("unter2 is no hunter");
});

it("keeps colours and takes away what moves a reader's cursor", () => {
  expect(printable("\u001b[32mgreen\u001b[0m")).toBe("\u001b[32mgreen\u001b[0m");
  expect(plain("\u001b[32mgreen\u001b[0m")).toBe("green");
  expect(printable("a\u001b[2J\u001b[1;1Hb\u0007c\u001b]0;title\u0007d\re")).toBe("abcde");
});

it("takes away what turns the direction of what stands after a quotation", () => {
  expect(quotable("\u001b[1mMend\u202e dnem\u2066 \u200fit\u061c")).toBe("Mend dnem it");
  expect(quotable("שלום 👩‍🚀 نمی‌خواهم")).toBe("שלום 👩‍🚀 نمی‌خواهم");
});

it("leaves no rest of two secrets that run into one another", () => {
  expect(redactor(["abcdef", "defghi"])("it is abcdefghi!")).toBe("it is •••!");
  expect(redactor(["abab"])("ababab.")).toBe("•••.");
  expect(redactor(["abcd"])("abcdabcd.")).toBe("•••.");
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

it("masks no more of a longer text in base64 than the secret's own characters, at each of the three offsets", () => {
  const secret = "?>~hunter2";
  const redact = redactor([secret]);
  for (const before of ["", "a", "ab"])
    for (const encoding of ["base64", "base64url"] as const) {
      const text = Buffer.from(`${before}${secret}rest`).toString(encoding);
      const from = Math.ceil((before.length * 8) / 6);
      const to = Math.floor(((before.length + secret.length) * 8) / 6);
      expect(redact(text)).toBe(`${text.slice(0, from)}•••${text.slice(to)}`);
    }
});

it("finds a short secret in base64 alone, and one of five bytes or more within a longer text", () => {
  for (const secret of ["?>~x", "?>~xy", "?>~xyz"]) {
    const redact = redactor([secret]);
    for (const encoding of ["base64", "base64url"] as const)
      expect(redact(Buffer.from(secret).toString(encoding))).toBe("•••");
    const within = Buffer.from(`${secret}rest`).toString("base64");
    expect(redact(within) === within).toBe(secret.length === 4);
  }
});

it("masks a Git token with the name that its host wants, and without", () => {
  const redact = redactor(gitSecrets("x-token-auth:t0ken-value"));
  expect(redact("as t0ken-value or x-token-auth:t0ken-value")).toBe("as ••• or •••");
  expect(gitSecrets("t0ken-value")).toEqual(["t0ken-value"]);
});

it("knows a value of any length in each of its forms, and masks all of it", () => {
  const key = `{"key":"${"0123456789abcdef".repeat(2000)}","end":1}`;
  const redact = redactor([key, "short one"]);
  for (const form of [
    key,
    Buffer.from(key).toString("base64"),
    encodeURIComponent(key),
    JSON.stringify(key).slice(1, -1),
  ])
    expect(redact(`before ${form} after`)).toBe("before ••• after");
});

it("takes no longer for secrets of thousands of lines, or for such as are alike for long", () => {
  const lines = Array.from({ length: 30_000 }, (_, index) => `line ${index} of a key`);
  const alike = Array.from({ length: 500 }, (_, index) => `${"a".repeat(80)}${index}`);
  const log = Array.from({ length: 1000 }, (_, index) => `${index} GET /some/path 200 ${"word ".repeat(16)}`);
  const took = (redact: (text: string) => string) => {
    const began = computedMs();
    for (const line of log) redact(line);
    redact("a".repeat(32_768));
    return computedMs() - began;
  };
  const few = redactor([lines[0] as string, alike[0] as string]);
  const many = redactor([lines.join("\n"), `${"a".repeat(29_999)}b`, ...alike]);
  expect(many(`it says ${lines[10_000]}`)).toBe("it says •••");
  took(few);
  // Where each form was looked for by itself, it took hundreds of times as long.
  expect(took(many)).toBeLessThan(10 * took(few));
});

it("masks beside secrets that are no whole characters", () => {
  expect(redactor(["half \ud83d", "hunter2"])("it is hunter2")).toBe("it is •••");
});
