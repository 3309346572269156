import { describe, expect, it } from "vitest";
import { aes256CbcDecrypt, aes256CbcEncrypt, hmacSha256, isTag } from "../../worker/domain/ciphers.ts";
import vectors from "../fixtures/wycheproof/vectors.json" with { type: "json" };

const bytes = (hex: string) => Buffer.from(hex, "hex");
const hex = (value: Uint8Array) => Buffer.from(value).toString("hex");
const refused = "A sealed value could not be opened";

describe("AES-256-CBC", () => {
  it.each(vectors.aesCbcPkcs5)("Wycheproof $tcId: $result $comment", ({ key, iv, msg, ct, result }) => {
    const open = () => hex(aes256CbcDecrypt(bytes(key), bytes(iv), bytes(ct)));
    if (result === "invalid") return expect(open).toThrow(refused);
    expect(hex(aes256CbcEncrypt(bytes(key), bytes(iv), bytes(msg)))).toBe(ct);
    expect(open()).toBe(msg);
  });

  it("refuses a ciphertext that is not whole blocks in the same words as bad padding", () => {
    for (const length of [0, 1, 15, 17, 31])
      expect(() =>
        aes256CbcDecrypt(bytes("00".repeat(32)), bytes("00".repeat(16)), new Uint8Array(length)),
      ).toThrow(refused);
  });

  it("takes a key of 32 and an IV of 16 bytes only", () => {
    for (const [key, iv] of [
      [0, 16],
      [16, 16],
      [24, 16],
      [33, 16],
      [32, 0],
      [32, 12],
      [32, 17],
    ] as const)
      for (const run of [aes256CbcEncrypt, aes256CbcDecrypt])
        expect(() => run(new Uint8Array(key), new Uint8Array(iv), new Uint8Array(16))).toThrow(TypeError);
  });
});

describe("HMAC-SHA-256", () => {
  it.each(vectors.hmacSha256)("Wycheproof $tcId: $result $comment", ({ key, msg, tag, result }) => {
    expect(isTag(bytes(tag), hmacSha256(bytes(key), bytes(msg)))).toBe(result === "valid");
    expect(isTag(bytes(tag).subarray(0, 16), hmacSha256(bytes(key), bytes(msg)))).toBe(false);
  });

  it("of parts is that of their bytes in a row", () => {
    const key = bytes("01".repeat(32));
    expect(hex(hmacSha256(key, bytes("0102"), bytes("03")))).toBe(hex(hmacSha256(key, bytes("010203"))));
  });
});
