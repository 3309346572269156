import { describe, expect, it } from "vitest";
import { mintConfirmation, readConfirmation } from "../../worker/domain/confirmation.ts";

const key = new Uint8Array(32).fill(1);
const confirmed = { accountId: "acc_1", databaseId: "db_1", statement: "DELETE FROM a" };
const token = mintConfirmation(key, confirmed, 1_000_000, new Uint8Array(12).fill(7));

describe("a confirmation", () => {
  it("is good for exactly what it was made for, until it expires", () => {
    expect(readConfirmation(key, confirmed, token, 999_999)).toEqual({
      nonce: Buffer.from(new Uint8Array(12).fill(7)).toString("base64url"),
      expiresAtMs: 1_000_000,
    });
    expect(readConfirmation(key, confirmed, token, 1_000_000)).toBeNull();
    expect(readConfirmation(new Uint8Array(32), confirmed, token, 0)).toBeNull();
  });

  it.each([
    { accountId: "acc_2" },
    { databaseId: "db_2" },
    { statement: "DELETE FROM a;" },
    // Where one ends and the next begins is part of it.
    { accountId: "acc_1d", databaseId: "b_1" },
  ])("is not good for anything else: %o", (change) => {
    expect(readConfirmation(key, { ...confirmed, ...change }, token, 0)).toBeNull();
  });

  it("has no bit that may be another, and one spelling", () => {
    const bytes = Buffer.from(token.slice(4), "base64url");
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const forged = Buffer.from(bytes);
      forged[bit >> 3] = (forged[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(readConfirmation(key, confirmed, `cfm_${forged.toString("base64url")}`, 0)).toBeNull();
    }
    for (const other of [
      `${token}=`,
      token.slice(0, -1),
      ` ${token}`,
      token.replace("cfm_", "cfn_"),
      "",
      "cfm_",
    ])
      expect(readConfirmation(key, confirmed, other, 0)).toBeNull();
  });
});
