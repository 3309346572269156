import { X509Certificate } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import {
  caddyStorage,
  giveCaddy,
  putObtained,
  readObtained,
  type Storage,
} from "../../agent/ingress/obtained.ts";
import { makeAuthority, makeServerCertificate } from "../../agent/databases/certificates.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const name = "www.shop.example";
const now = new Date();
const notAfter = "2030-01-01T00:00:00.000Z";
let volume: string;
let storage: Storage;

beforeEach(async () => {
  volume = temporaryFolder();
  const found = await storageOf("https://ca.example:14000/acme/dir");
  if (!found) throw new Error("No volume");
  storage = found;
});

const storageOf = (directory?: string) =>
  caddyStorage(
    { volumes: async () => Promise.resolve([{ name: "berth-ingress-a1", labels: {}, folder: volume }]) },
    "a1",
    directory,
  );

const authority = await makeAuthority("Test", now);

async function certificate(at = now, names = [name]) {
  const { certificate: chain, key } = await makeServerCertificate(authority, names, at);
  return { name, chain, key };
}

it("a certificate from another host is where Caddy looks for its own, readable by nobody else", async () => {
  expect(readObtained(storage, name)).toBe(null);
  const made = await certificate();
  putObtained(storage, { ...made, notAfter });
  const folder = join(volume, "caddy", "certificates", "ca.example-14000-acme-dir", name);
  expect(readdirSync(folder).toSorted()).toEqual([`${name}.crt`, `${name}.json`, `${name}.key`]);
  for (const file of readdirSync(folder)) expect(statSync(join(folder, file)).mode & 0o077).toBe(0);
  expect(JSON.parse(readFileSync(join(folder, `${name}.json`), "utf8"))).toMatchObject({ sans: [name] });
  expect(readObtained(storage, name)).toMatchObject(made);
  expect((await storageOf())?.folders.at(-1)).toBe("acme-v02.api.letsencrypt.org-directory");
});

it("one that is valid for longer stays, and one that ends sooner is replaced", async () => {
  const [first, same, later] = await Promise.all(
    [now, now, new Date(now.getTime() + 2000)].map((at) => certificate(at)),
  );
  if (!first || !same || !later) throw new Error("No certificates");
  putObtained(storage, { ...first, notAfter });
  // Whatever is said of it.
  putObtained(storage, { ...same, notAfter: "9999-12-31T23:59:59.000Z" });
  expect(readObtained(storage, name)?.chain).toBe(first.chain);
  putObtained(storage, { ...later, notAfter });
  expect(readObtained(storage, name)).toMatchObject(later);
});

it("one that no visitor would accept for the name is left out, and those beside it are not", async () => {
  const [good, other, ofAnother] = [
    await certificate(),
    await certificate(),
    await certificate(now, ["shop.example"]),
  ];
  const engine = { volumes: async () => [{ name: "berth-ingress-a1", labels: {}, folder: volume }] };
  const give = (directory: string | undefined, ...given: { name: string; chain: string; key: string }[]) =>
    giveCaddy(
      engine,
      "a1",
      directory,
      given.map((one) => ({ ...one, notAfter })),
    );
  const own = "https://ca.example:14000/acme/dir";
  const refused = [
    { chain: "no certificate", key: good.key },
    { chain: good.chain, key: "no key" },
    { chain: good.chain, key: other.key },
    { chain: ofAnother.chain, key: ofAnother.key },
  ].map((one) => ({ ...one, name }));
  await expect(give(own, ...refused, good)).rejects.toThrow(AggregateError);
  expect(readObtained(storage, name)).toMatchObject(good);
  // Of an authority that visitors' browsers do not know.
  await expect(give(undefined, good)).rejects.toThrow(AggregateError);
  const known = await storageOf();
  if (!known) throw new Error("No volume");
  expect(readObtained(known, name)).toBe(null);
  putObtained({ ...known, roots: [new X509Certificate(authority.certificate)] }, { ...good, notAfter });
  expect(readObtained(known, name)).toMatchObject(good);
});

it("no name and no link leads to another folder", async () => {
  const made = await certificate();
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
