import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  base62,
  deriveKey,
  isOwnWebhook,
  isOwnApiKey,
  mintApiKey,
  mintToken,
  webhookHash,
  webhookSegment,
} from "../../worker/domain/tokens.ts";

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
        expect(await isOwnApiKey(key, [checkKey])).toBe(true);
        expect(await isOwnApiKey(key, [otherKey])).toBe(false);
      }),
    );
  });

  it("is recognised after a rotation, as long as the older key is known", async () => {
    const key = await mintApiKey(new Uint8Array(32).fill(7), checkKey);
    const newer = deriveKey("B".repeat(43), "api-key-check");
    expect(await isOwnApiKey(key, [newer, checkKey])).toBe(true);
    expect(await isOwnApiKey(key, [newer])).toBe(false);
  });

  it("with any one character changed is refused without a look-up", async () => {
    const key = await mintApiKey(new Uint8Array(32).fill(7), checkKey);
    for (let index = 0; index < key.length; index++) {
      const other = key[index] === "x" ? "y" : "x";
      expect(await isOwnApiKey(key.slice(0, index) + other + key.slice(index + 1), [checkKey])).toBe(false);
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

  it("of webhooks differ by site and by generation, and are known without being looked for", async () => {
    const key = deriveKey(secretKey, "deploy-webhook");
    const all = await Promise.all(
      ["site_a", "site_b"].flatMap((site) =>
        [1, 2].map((generation) => webhookSegment(key, site, generation)),
      ),
    );
    expect(new Set(all.map(webhookHash)).size).toBe(4);
    const other = deriveKey("B".repeat(43), "deploy-webhook");
    for (const segment of all) {
      expect(await isOwnWebhook(segment, [other, key])).toBe(true);
      expect(await isOwnWebhook(segment, [other])).toBe(false);
      expect(await isOwnWebhook(segment.slice(0, -6), [key])).toBe(false);
    }
  });
});
