import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

const root = join(import.meta.dirname, "../..");

/** Files of the Worker whose text matches. */
const filesWith = (pattern: RegExp): string[] =>
  globSync("worker/**/*.{ts,tsx}", { cwd: root }).filter((file) =>
    pattern.test(readFileSync(join(root, file), "utf8")),
  );

it("an account's role and plan are written by the verb that tells the guards of its keys, and by nothing else", () => {
  expect(filesWith(/\.update\(accounts\)|UPDATE (?:accounts|\$\{accounts\})/i).toSorted()).toEqual([
    // Of the name only.
    "worker/services/accounts/change-profile.ts",
    "worker/services/accounts/change.ts",
    // Of the address only.
    "worker/services/accounts/confirm-email.ts",
    // Of the second step only, which keys do not ask for.
    "worker/services/accounts/disable-two-factor.ts",
    // Of the suspension only, which they tell the guards too.
    "worker/services/accounts/release.ts",
    // Of a person's name and address; its keys are revoked.
    "worker/services/accounts/remove.ts",
    "worker/services/accounts/suspend.ts",
  ]);
  // The first operator, who has no key yet.
  expect(filesWith(/\.insert\(accounts\)|INTO (?:accounts|\$\{accounts\})/i)).toEqual([
    "worker/services/setup/run.ts",
  ]);
  // better-auth writes accounts too, and does not know of either column.
  expect(readFileSync(join(root, "worker/adapters/auth.ts"), "utf8")).not.toMatch(/\b(?:role|plan):/);
});
