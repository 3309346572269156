import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { secretBox } from "../../worker/adapters/secret-box.ts";

const [oldKey, newKey, strangeKey] = ["A".repeat(43), "B".repeat(43), "C".repeat(43)] as const;
const random = (count: number) => crypto.getRandomValues(new Uint8Array(count));
const box = secretBox([oldKey], random);
const here = "sites.git_token:site_a";

const refused = (sealed: string, by = box) =>
  expect(() => by.open(sealed, here)).toThrow(new Error("A sealed value could not be opened"));

describe("the secret box", () => {
  it("opens what it sealed, in its own place only", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (plain) => {
        const sealed = box.seal(plain, here);
        expect(box.open(sealed, here)).toBe(plain);
        expect(() => box.open(sealed, "sites.git_token:site_b")).toThrow("could not be opened");
        expect(() => box.open(sealed, "sites.registry_password:site_a")).toThrow("could not be opened");
      }),
    );
  });

  it("refuses any flipped bit, cut, spelling and other key with one and the same words", () => {
    const sealed = box.seal("a secret", here);
    const start = sealed.lastIndexOf(".") + 1;
    const [head, body] = [sealed.slice(0, start), Buffer.from(sealed.slice(start), "base64url")];
    for (let bit = 0; bit < body.length * 8; bit++) {
      const flipped = Buffer.from(body);
      flipped.writeUInt8(flipped.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
      refused(head + flipped.toString("base64url"));
    }
    for (let length = 0; length < body.length; length++)
      refused(head + body.subarray(0, length).toString("base64url"));
    // Every character of the text, the key id and the last one's unused bits included.
    for (let index = 0; index < sealed.length; index++)
      for (const other of ["A", "B", ".", "=", " "].filter((one) => one !== sealed[index]))
        refused(sealed.slice(0, index) + other + sealed.slice(index + 1));
    for (const text of [
      "",
      ".",
      "v1.",
      "v2..",
      sealed.slice(start),
      `${sealed}=`,
      `${sealed}.`,
      `v2.${sealed}`,
    ])
      refused(text);
    refused(sealed, secretBox([strangeKey], random));
    refused(sealed.replace(/^v2\.[^.]+/, "v1"), secretBox([strangeKey, newKey], random));
  });

  it("never seals the same text to the same bytes", () => {
    expect(box.seal("same", here)).not.toBe(box.seal("same", here));
  });

  it("with a newer key opens what older ones sealed, and seals with the newest", () => {
    const rotated = secretBox([newKey, oldKey], random);
    const sealed = box.seal("a secret", here);
    expect(rotated.open(sealed, here)).toBe("a secret");
    expect(rotated.isCurrent(sealed)).toBe(false);
    const again = rotated.seal("a secret", here);
    expect(rotated.isCurrent(again)).toBe(true);
    expect(secretBox([newKey], random).open(again, here)).toBe("a secret");
    refused(again, box);
  });

  it("does not take one key's value under another's name", () => {
    const rotated = secretBox([newKey, oldKey], random);
    const [, newId = ""] = rotated.seal("", here).split(".");
    const [version, oldId, text] = box.seal("a secret", here).split(".");
    expect(newId).not.toBe(oldId);
    refused([version, newId, text].join("."), rotated);
    refused(["v1", text].join("."), rotated);
  });
});
