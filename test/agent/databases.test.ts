import { createHmac } from "node:crypto";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { maxConnections } from "../../agent/databases/database-engine.ts";
import { engines } from "../../agent/databases/index.ts";
import { mysqlVerifier, redisVerifier, scramVerifier } from "../../agent/databases/verifiers.ts";
import { DatabaseSpec } from "../../protocol/agent/jobs.ts";
import { connectionString, databaseNameOf, usernameOf } from "../../worker/domain/database-engines.ts";

const limits = (memoryMb: number) => ({ memoryMb, cpuMilli: 500, pids: 256 });

describe("what a server keeps of a password", () => {
  it("is for PostgreSQL what RFC 7677's example signs with", () => {
    const verifier = scramVerifier("pencil", Buffer.from("W22ZaJ0SNY7soEsUEjb6gQ==", "base64"));
    expect(verifier).toMatch(/^SCRAM-SHA-256\$4096:W22ZaJ0SNY7soEsUEjb6gQ==\$[\w+/]{43}=:[\w+/]{43}=$/);
    const nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
    const message = `n=user,r=rOprNGfwEbeRWgbNEkqO,r=${nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r=${nonce}`;
    const serverKey = Buffer.from(verifier.split(":")[2] ?? "", "base64");
    expect(createHmac("sha256", serverKey).update(message).digest("base64")).toBe(
      "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
    );
  });

  it("is for MariaDB what its manual's example shows, and for Redis a SHA-256", () => {
    expect(mysqlVerifier("mypass")).toBe("*6C8989366EAF75BB670AD8EA7A7FC1176A95CEF4");
    expect(redisVerifier("abc")).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  });
});

describe("a server's configuration", () => {
  it.each([
    [
      "postgresql",
      256,
      ["shared_buffers=64MB", "max_connections=41", "shared_preload_libraries=pg_stat_statements"],
    ],
    ["postgresql", 4096, ["shared_buffers=1024MB", "max_connections=409", "work_mem=3932kB"]],
    ["mysql", 1024, ["--innodb-buffer-pool-size=409M", "--max-connections=137", "--skip-name-resolve"]],
    ["redis", 1024, ["768mb", "noeviction", "yes"]],
  ] as const)("of %s fits %i MB", (type, memoryMb, settings) => {
    expect(engines[type].command(limits(memoryMb))).toEqual(expect.arrayContaining([...settings]));
  });

  it("leaves every connection of PostgreSQL a sort within its pack's memory", () => {
    fc.assert(
      fc.property(fc.integer({ min: 256, max: 65_536 }), (memoryMb) => {
        const command = engines.postgresql.command(limits(memoryMb));
        const number = (name: string) =>
          Number(
            new RegExp(`^${name}=(\\d+)`).exec(command.find((one) => one.startsWith(`${name}=`)) ?? "")?.[1],
          );
        const usedMb =
          number("shared_buffers") + (number("work_mem") / 1024) * maxConnections(limits(memoryMb));
        expect(usedMb).toBeLessThan(memoryMb);
      }),
    );
  });
});

it.each(["pg", "pg-x", "pg-", "p", "pgx"])(
  "a database named %s has no login of a name that PostgreSQL reserves",
  (name) => {
    expect(databaseNameOf(name, new Uint8Array(8))).not.toMatch(/^pg_/);
  },
);

it("whatever a database is named, the server's names for it need no quotes and fit", () => {
  fc.assert(
    fc.property(
      fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/),
      fc.uint8Array({ minLength: 8, maxLength: 8 }),
      fc.integer({ min: 1, max: 99_999 }),
      (name, random, generation) => {
        const databaseName = databaseNameOf(name, random);
        expect(DatabaseSpec.shape.databaseName.safeParse(databaseName).success).toBe(true);
        const username = usernameOf(databaseName, generation);
        expect(username.length).toBeLessThanOrEqual(63);
        const login = { username, password: "0123456789abcdef" };
        const url = new URL(connectionString({ type: "postgresql", name, databaseName }, login));
        expect([url.username, url.password, url.hostname, url.port, url.pathname]).toEqual([
          username,
          login.password,
          `${name}.internal`,
          "5432",
          `/${databaseName}`,
        ]);
      },
    ),
  );
});
