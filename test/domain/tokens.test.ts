import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  base62,
  deriveKey,
  isOwnApiKey,
  mintApiKey,
  mintToken,
  webhookSegment,
} from "../../worker/domain/tokens.ts";
import { secretBox } from "../../worker/adapters/secret-box.ts";

const secretKey = "A".repeat(43);
const checkKey = deriveKey(secretKey, "api-key-check");
const bytes32 = fc.uint8Array({ minLength: 32, maxLength: 32 });

describe("an API key", () => {
  it("is recognised by the installation that minted it, and by no other", async () => {
    const otherKey = deriveKey("B".repeat(43), "api-key-check");
    await fc.assert(
      fc.asyncProperty(bytes32, async (random) => {
        const key = await mintApiKey(random, checkKey);
        expect(key).toMatch(/^sk_0[0-9A-Za-z]{49}$/);
        expect(await isOwnApiKey(key, checkKey)).toBe(true);
        expect(await isOwnApiKey(key, otherKey)).toBe(false);
      }),
    );
  });

  it("with any one character changed is refused without a look-up", async () => {
    const key = await mintApiKey(new Uint8Array(32).fill(7), checkKey);
    for (let index = 0; index < key.length; index++) {
      const other = key[index] === "x" ? "y" : "x";
      expect(await isOwnApiKey(key.slice(0, index) + other + key.slice(index + 1), checkKey)).toBe(false);
    }
  });
});

describe("tokens", () => {
  it("of a kind are equally long whatever the random bytes", () => {
    fc.assert(
      fc.property(bytes32, (random) => {
        expect(base62(random)).toHaveLength(43);
        expect(mintToken("inv", random)).toMatch(/^inv_0[0-9A-Za-z]{43}$/);
      }),
    );
  });

  it("of webhooks differ by site and by generation", () => {
    const key = deriveKey(secretKey, "deploy-webhook");
    const all = ["site_a", "site_b"].flatMap((site) =>
      [1, 2].map((generation) => webhookSegment(key, site, generation)),
    );
    expect(new Set(all).size).toBe(4);
  });
});

describe("the secret box", () => {
  const random = (count: number) => crypto.getRandomValues(new Uint8Array(count));
  const box = secretBox(secretKey, random);

  it("opens what it sealed, in its own place only", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (plain) => {
        const sealed = box.seal(plain, "sites.git_token:site_a");
        expect(box.open(sealed, "sites.git_token:site_a")).toBe(plain);
        expect(() => box.open(sealed, "sites.git_token:site_b")).toThrow("could not be opened");
      }),
    );
  });

  it("refuses any flipped bit, any truncation and any other key with one and the same words", () => {
    const sealed = box.seal("a secret", "here");
    const body = Buffer.from(sealed.slice(3), "base64url");
    const refused = (value: string, by = box) =>
      expect(() => by.open(value, "here")).toThrow("A sealed value could not be opened");
    for (let bit = 0; bit < body.length * 8; bit++) {
      const flipped = Buffer.from(body);
      flipped.writeUInt8(flipped.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
      refused(`v1.${flipped.toString("base64url")}`);
    }
    for (let length = 0; length < body.length; length++)
      refused(`v1.${body.subarray(0, length).toString("base64url")}`);
    refused(sealed.slice(3));
    refused(sealed, secretBox("B".repeat(43), random));
  });

  it("never seals the same text to the same bytes", () => {
    expect(box.seal("same", "here")).not.toBe(box.seal("same", "here"));
  });
});
