import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { caddyStorage, putObtained, readObtained, type Storage } from "../../agent/ingress/obtained.ts";
import { makeAuthority, makeServerCertificate } from "../../agent/databases/certificates.ts";

const name = "www.shop.example";
let volume: string;
let storage: Storage;

beforeEach(async () => {
  volume = mkdtempSync(join(tmpdir(), "berth-obtained-"));
  const found = await storageOf("https://ca.example:14000/acme/dir");
  if (!found) throw new Error("No volume");
  storage = found;
});
afterEach(() => rmSync(volume, { recursive: true }));

const storageOf = (directory?: string) =>
  caddyStorage(
    { volumes: async () => Promise.resolve([{ name: "berth-ingress-a1", labels: {}, folder: volume }]) },
    "a1",
    directory,
  );

async function certificate() {
  const now = new Date();
  const authority = await makeAuthority("Test", now);
  const { certificate: chain, key } = await makeServerCertificate(authority, [name], now);
  return { name, chain, key };
}

it("a certificate from another host is where Caddy looks for its own, readable by nobody else", async () => {
  expect(readObtained(storage, name)).toBe(null);
  const made = await certificate();
  putObtained(storage, { ...made, notAfter: "2030-01-01T00:00:00.000Z" });
  const folder = join(volume, "caddy", "certificates", "ca.example-14000-acme-dir", name);
  expect(readdirSync(folder).toSorted()).toEqual([`${name}.crt`, `${name}.json`, `${name}.key`]);
  for (const file of readdirSync(folder)) expect(statSync(join(folder, file)).mode & 0o077).toBe(0);
  expect(JSON.parse(readFileSync(join(folder, `${name}.json`), "utf8"))).toMatchObject({ sans: [name] });
  expect(readObtained(storage, name)).toMatchObject(made);
  expect((await storageOf())?.folders.at(-1)).toBe("acme-v02.api.letsencrypt.org-directory");
});

it("one that is valid for longer stays, and one that ends sooner is replaced", async () => {
  const [first, second] = [await certificate(), await certificate()];
  putObtained(storage, { ...first, notAfter: "2030-01-01T00:00:00.000Z" });
  const { notAfter } = readObtained(storage, name) ?? { notAfter: "" };
  putObtained(storage, { ...second, notAfter });
  expect(readObtained(storage, name)?.chain).toBe(first.chain);
  putObtained(storage, { ...second, notAfter: new Date(Date.parse(notAfter) + 1000).toISOString() });
  expect(readObtained(storage, name)).toMatchObject(second);
});

it("no name and no link leads to another folder", async () => {
  const made = await certificate();
  const notAfter = "2030-01-01T00:00:00.000Z";
  for (const hostile of ["*.shop.example", "../../x.example", "..", "a..b", "a/b.example", ""]) {
    expect(readObtained(storage, hostile)).toBe(null);
    expect(() => putObtained(storage, { ...made, name: hostile, notAfter })).toThrow();
  }
  const elsewhere = join(volume, "elsewhere");
  mkdirSync(elsewhere);
  mkdirSync(join(volume, "caddy"));
  symlinkSync(elsewhere, join(volume, "caddy", "certificates"));
  expect(() => putObtained(storage, { ...made, notAfter })).toThrow("is a link");
  expect(readdirSync(elsewhere)).toEqual([]);
});
