import { getTableColumns, getTableName, is } from "drizzle-orm";
import { SQLiteTable } from "drizzle-orm/sqlite-core";
import { describe, expect, it } from "vitest";
import type { SecretsRotated } from "../../protocol/api/secrets.ts";
import { secretBox } from "../../worker/adapters/secret-box.ts";
import { contextOf } from "../../worker/compose.ts";
import * as schema from "../../worker/db/schema.ts";
import { sealedPlaces } from "../../worker/domain/sealed-places.ts";
import { deriveKey, mintApiKey, sha256Hex, webhookHash, webhookSegment } from "../../worker/domain/tokens.ts";
import { places } from "../../worker/services/secrets/places.ts";
import { account, api, bindings, call, createSite, operator, run, site } from "./service.ts";

const [currentKey, oldKey] = ["A".repeat(43), "B".repeat(43)] as const;
const random = (count: number) => crypto.getRandomValues(new Uint8Array(count));
const oldBox = secretBox([oldKey], random);
const newBox = secretBox([currentKey], random);

const textOf = async (statement: string, ...values: unknown[]) =>
  (await bindings.DB.prepare(statement)
    .bind(...values)
    .first<string>("text")) ?? "";

/** All pages of one pass. */
async function rotateAll(limit = 200) {
  const sum = { resealed: 0, overtaken: 0, unreadable: [] as string[], pages: 0 };
  for (let cursor: string | null | undefined; cursor !== null;) {
    const { status, body } = await api<SecretsRotated>(await operator(), "POST", "/secrets/rotate", {
      limit,
      ...(cursor && { cursor }),
    });
    expect(status).toBe(200);
    sum.resealed += body.resealed;
    sum.overtaken += body.overtaken;
    sum.unreadable.push(...body.unreadable);
    sum.pages++;
    cursor = body.nextCursor;
  }
  return sum;
}

/** A site whose secrets were all sealed under the older key. */
async function oldSite(key: string) {
  const { siteId } = await createSite(key);
  await run(
    "UPDATE sites SET git_token_sealed = ?, registry_password_sealed = ? WHERE id = ?",
    oldBox.seal("git token", `sites.git_token:${siteId}`),
    oldBox.seal("password", `sites.registry_password:${siteId}`),
    siteId,
  );
  for (const version of [1, 2])
    await run(
      "INSERT INTO site_env_versions (site_id, version, entries, created_at) VALUES (?, ?, ?, 0)",
      siteId,
      version,
      JSON.stringify([
        { key: "PLAIN", value: "shown", scope: "both", secret: false },
        {
          key: "TOKEN",
          value: oldBox.seal(`value ${version}`, `site_env:${siteId}:TOKEN`),
          scope: "both",
          secret: true,
        },
      ]),
    );
  return siteId;
}

describe("rotating the secrets", () => {
  it("seals every value in every place anew, page by page; a second pass finds nothing", async () => {
    const ids = await Promise.all([1, 2, 3].map(async () => oldSite(await account())));
    const requestId = sha256Hex(crypto.randomUUID());
    await run(
      "INSERT INTO idempotent_requests (id, body_hash, status, response_sealed, created_at) VALUES (?, '', 201, ?, ?)",
      requestId,
      oldBox.seal("{}", `idempotent_requests:${requestId}`),
      Date.now(),
    );
    const databaseId = "db_001m80000000000000000000000";
    const [admin, password] = [
      `databases.admin_password:${databaseId}`,
      `databases.password:${databaseId}`,
    ] as const;
    await run(
      `INSERT INTO databases (id, account_id, name, type, status, image, pack_id, billing_term, database_name, admin_password_sealed,
        generation, password_sealed, next_password_sealed, created_at, updated_at)
       VALUES (?, 'acc_x', 'sealed', 'redis', 'STOPPED', 'redis:7.2', 'pack_x', 1, 'sealed', ?, 4, ?, ?, 0, 0)`,
      databaseId,
      oldBox.seal("admin", admin),
      oldBox.seal("current", `${password}:4`),
      oldBox.seal("next", `${password}:5`),
    );
    const wildcard = "*.sealed.example";
    await run(
      "INSERT INTO certificates (id, busy_until, next_at, key_sealed, order_key_sealed) VALUES (?, 0, 0, ?, ?)",
      wildcard,
      oldBox.seal("key", `certificates.key:${wildcard}`),
      oldBox.seal("order key", `certificates.order_key:${wildcard}`),
    );
    const directory = "https://acme.example/directory";
    await run(
      "INSERT INTO acme_accounts (id, key_sealed) VALUES (?, ?)",
      directory,
      oldBox.seal("account key", `acme_accounts:${directory}`),
    );
    const first = await rotateAll(2);
    expect(first).toMatchObject({ resealed: 3 * 4 + 4 + 3, overtaken: 0, unreadable: [] });
    expect(first.pages).toBeGreaterThan(sealedPlaces.length);
    for (const id of ids) {
      const token = await textOf("SELECT git_token_sealed AS text FROM sites WHERE id = ?", id);
      expect(newBox.open(token, `sites.git_token:${id}`)).toBe("git token");
      const password = await textOf("SELECT registry_password_sealed AS text FROM sites WHERE id = ?", id);
      expect(newBox.open(password, `sites.registry_password:${id}`)).toBe("password");
      for (const version of [1, 2]) {
        const [plain, secret] = JSON.parse(
          await textOf(
            "SELECT entries AS text FROM site_env_versions WHERE site_id = ? AND version = ?",
            id,
            version,
          ),
        ) as { value: string }[];
        expect(plain?.value).toBe("shown");
        expect(newBox.open(secret?.value ?? "", `site_env:${id}:TOKEN`)).toBe(`value ${version}`);
      }
    }
    const ofDatabase = async (column: string) =>
      textOf(`SELECT ${column} AS text FROM databases WHERE id = ?`, databaseId);
    expect(newBox.open(await ofDatabase("admin_password_sealed"), admin)).toBe("admin");
    expect(newBox.open(await ofDatabase("password_sealed"), `${password}:4`)).toBe("current");
    expect(newBox.open(await ofDatabase("next_password_sealed"), `${password}:5`)).toBe("next");
    const ofCertificate = async (column: string) =>
      textOf(`SELECT ${column} AS text FROM certificates WHERE id = ?`, wildcard);
    expect(newBox.open(await ofCertificate("key_sealed"), `certificates.key:${wildcard}`)).toBe("key");
    expect(newBox.open(await ofCertificate("order_key_sealed"), `certificates.order_key:${wildcard}`)).toBe(
      "order key",
    );
    const accountKey = await textOf("SELECT key_sealed AS text FROM acme_accounts WHERE id = ?", directory);
    expect(newBox.open(accountKey, `acme_accounts:${directory}`)).toBe("account key");
    const answer = await textOf(
      "SELECT response_sealed AS text FROM idempotent_requests WHERE id = ?",
      requestId,
    );
    expect(newBox.open(answer, `idempotent_requests:${requestId}`)).toBe("{}");
    expect(await rotateAll()).toMatchObject({ resealed: 0, overtaken: 0, unreadable: [] });
  });

  it("does not write over a row that changed after it was read", async () => {
    const siteId = await oldSite(await account());
    const place = places["sites.git_token"];
    const ctx = contextOf(bindings, { type: "system" }, () => undefined);
    const read = {
      key: siteId,
      text: await textOf("SELECT git_token_sealed AS text FROM sites WHERE id = ?", siteId),
    };
    await run("UPDATE sites SET git_token_sealed = 'newer' WHERE id = ?", siteId);
    expect((await ctx.db.run(place.update(read, "older"))).meta.changes).toBe(0);
    expect(await textOf("SELECT git_token_sealed AS text FROM sites WHERE id = ?", siteId)).toBe("newer");
    await run("UPDATE sites SET git_token_sealed = NULL WHERE id = ?", siteId);
    await rotateAll();
  });

  it("names what no key opens, leaves it as it is and goes on", async () => {
    const [lost, next] = [await oldSite(await account()), await oldSite(await account())];
    const strange = secretBox(["C".repeat(43)], random).seal("lost", `sites.git_token:${lost}`);
    await run("UPDATE sites SET git_token_sealed = ? WHERE id = ?", strange, lost);
    const { unreadable } = await rotateAll();
    expect(unreadable).toEqual([`sites.git_token:${lost}`]);
    expect(await textOf("SELECT git_token_sealed AS text FROM sites WHERE id = ?", lost)).toBe(strange);
    const token = await textOf("SELECT git_token_sealed AS text FROM sites WHERE id = ?", next);
    expect(newBox.open(token, `sites.git_token:${next}`)).toBe("git token");
    await run("UPDATE sites SET git_token_sealed = NULL WHERE id = ?", lost);
  });

  it("refuses a cursor it did not give: 400", async () => {
    for (const cursor of ["x", "sites.git_token", "packs/", "/"])
      expect((await api(await operator(), "POST", "/secrets/rotate", { cursor })).status).toBe(400);
  });

  it("knows every column that holds sealed values", () => {
    const columns = Object.values(schema)
      .filter((table) => is(table, SQLiteTable))
      .flatMap((table) =>
        Object.values(getTableColumns(table)).map(({ name }) => `${getTableName(table)}.${name}`),
      )
      .filter((name) => name.endsWith("_sealed"));
    const walked = sealedPlaces.map((place) =>
      places[place].rowsAfter("", 1).queryChunks.map(textOfChunk).join(""),
    );
    for (const one of columns) {
      const [table, name] = one.split(".");
      const walks = walked.filter((text) => {
        const [selected = "", from = ""] = text.split(" AS text FROM ");
        return new RegExp(`\\b${name}\\b`).test(selected) && from.startsWith(`${table} `);
      });
      expect([one, walks.length]).toEqual([one, 1]);
    }
    expect(columns.length).toBeGreaterThanOrEqual(3);
  });
});

const textOfChunk = (chunk: unknown): string =>
  chunk && typeof chunk === "object" && "value" in chunk
    ? String(chunk.value)
    : chunk && typeof chunk === "object" && "queryChunks" in chunk
      ? (chunk.queryChunks as unknown[]).map(textOfChunk).join("")
      : "?";

describe("after a rotation", () => {
  it("an API key minted under the older key works", async () => {
    const owner = await account();
    const { siteId } = await createSite(owner);
    const accountId = await textOf("SELECT account_id AS text FROM sites WHERE id = ?", siteId);
    const key = await mintApiKey(random(32), deriveKey(oldKey, "api-key-check"));
    const ctx = contextOf(bindings, { type: "system" }, () => undefined);
    await run(
      "INSERT INTO api_keys (id, account_id, name, hash, start, origin, created_at) VALUES (?, ?, 'old', ?, '', 'setup', 0)",
      ctx.newId("key"),
      accountId,
      sha256Hex(key),
    );
    expect((await site(key, siteId)).id).toBe(siteId);
  });

  it("a webhook address made under the older key is shown and works; made under a lost one it works", async () => {
    const owner = await account();
    const { siteId } = await createSite(owner);
    const made = async (secretKey: string) => {
      const segment = await webhookSegment(deriveKey(secretKey, "deploy-webhook"), siteId, 1);
      await run("UPDATE sites SET webhook_hash = ? WHERE id = ?", webhookHash(segment), siteId);
      return segment;
    };
    const older = await made(oldKey);
    const shown = await api<{ url: string }>(owner, "GET", `/sites/${siteId}/webhook`);
    expect(shown.body.url).toContain(older);
    const lost = await made("C".repeat(43));
    expect(await api(owner, "GET", `/sites/${siteId}/webhook`)).toMatchObject({
      status: 409,
      body: { reason: expect.stringContaining("Rotate it") as string },
    });
    // An unpaid site is not deployed, but found.
    expect((await call(`/webhooks/deploy/${lost}`, { method: "POST" })).status).toBe(402);
    // The whole of an address counts, its check part too.
    for (const segment of [lost, older])
      for (const wrong of [segment.slice(0, -6), `${segment.slice(0, -6)}AAAAAA`])
        expect((await call(`/webhooks/deploy/${wrong}`, { method: "POST" })).status).toBe(404);
    expect((await call(`/webhooks/deploy/${older}`, { method: "POST" })).status).toBe(404);
    const rotated = await api<{ url: string }>(owner, "POST", `/sites/${siteId}/webhook/rotate`);
    expect((await api(owner, "GET", `/sites/${siteId}/webhook`)).body).toEqual(rotated.body);
  });
});
