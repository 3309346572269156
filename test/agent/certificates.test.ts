import { createPrivateKey, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { statSync, writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { connect, createServer } from "node:tls";
import { describe, expect, it } from "vitest";
import {
  endsAtOf,
  isAuthorityFit,
  isFit,
  makeAuthority,
  makeServerCertificate,
} from "../../agent/databases/certificates.ts";
import { openPublicAccess } from "../../agent/databases/public-access.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const now = new Date();
const inDays = (days: number) => new Date(now.getTime() + days * 24 * 60 * 60_000);
const authority = await makeAuthority("Berth host 0123", now);
const names = ["192.0.2.7", "db.example.com", "shop.internal"];
const server = await makeServerCertificate(authority, names, now);
const folder = temporaryFolder();

/** What a client says that was given this authority and verifies this name. */
async function visit(ca: string, name: string): Promise<string> {
  const listening = createServer({ key: server.key, cert: server.certificate }, (socket) => socket.end());
  listening.on("tlsClientError", () => undefined).listen(0, "127.0.0.1");
  await once(listening, "listening");
  const { port } = listening.address() as AddressInfo;
  const socket = connect({ port, host: "127.0.0.1", ca, servername: name });
  try {
    await once(socket, "secureConnect");
    return "trusted";
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? "failed";
  } finally {
    socket.destroy();
    listening.close();
  }
}

describe("a server's certificate", () => {
  it("is trusted by who has its authority, for its names, and by nobody else", async () => {
    for (const name of ["db.example.com", "shop.internal"])
      expect([name, await visit(authority.certificate, name)]).toEqual([name, "trusted"]);
    expect(new X509Certificate(server.certificate).checkIP("192.0.2.7")).toBe("192.0.2.7");
    expect(await visit(authority.certificate, "other.internal")).toBe("ERR_TLS_CERT_ALTNAME_INVALID");
    expect(await visit((await makeAuthority("Berth host 0123", now)).certificate, "shop.internal")).toMatch(
      /SELF_SIGNED/,
    );
  });

  it("names an IPv6 address as an address, by which clients verify it", async () => {
    const reached = ["2001:db8::7", "shop.internal"];
    const { certificate } = await makeServerCertificate(authority, reached, now);
    expect(new X509Certificate(certificate).checkIP("2001:db8::7")).toBe("2001:db8::7");
    expect(isFit(certificate, authority, reached, now)).toBe(true);
  });

  it("names the key that signed it as its authority's certificate does", async () => {
    const {
      X509Certificate: Parsed,
      AuthorityKeyIdentifierExtension,
      SubjectKeyIdentifierExtension,
    } = await import("../../agent/databases/x509.ts");
    const [leaf, root] = [new Parsed(server.certificate), new Parsed(authority.certificate)];
    expect(leaf.getExtension(AuthorityKeyIdentifierExtension)?.keyId).toBe(
      root.getExtension(SubjectKeyIdentifierExtension)?.keyId,
    );
  });

  it("is no authority itself", () => {
    expect(new X509Certificate(server.certificate).ca).toBe(false);
    expect(new X509Certificate(authority.certificate).ca).toBe(true);
    expect(
      new X509Certificate(server.certificate).checkIssued(new X509Certificate(authority.certificate)),
    ).toBe(true);
  });

  it("is made anew for other names, by another authority, months before its end, and where there is none", async () => {
    const fits = (pem: string, by = authority, wanted = names, at = now) => isFit(pem, by, wanted, at);
    expect(fits(server.certificate)).toBe(true);
    expect(fits(server.certificate, authority, ["192.0.2.8"])).toBe(false);
    expect(fits(server.certificate, await makeAuthority("Berth host 0123", now))).toBe(false);
    expect(fits(server.certificate, authority, names, inDays(270))).toBe(true);
    expect(fits(server.certificate, authority, names, inDays(280))).toBe(false);
    expect(fits("")).toBe(false);
    expect(endsAtOf(server.certificate).slice(0, 10)).toBe(inDays(397).toISOString().slice(0, 10));
    expect([
      isAuthorityFit(authority.certificate, now),
      isAuthorityFit(authority.certificate, inDays(3200)),
    ]).toEqual([true, false]);
  });
});

it("who is reached from outside, and the authority, outlive the agent, readable by nobody else", async () => {
  const entry = { port: 20_001, allow: ["203.0.113.0/24"], containerPort: 5432 };
  const before = openPublicAccess(folder, "0123", "192.0.2.7");
  expect(before.set("db_1", entry)).toBe(true);
  expect(before.set("db_1", entry)).toBe(false);
  before.set("db_2", entry);
  const after = openPublicAccess(folder, "0123", "192.0.2.7");
  // The second agent reads what the first one made.
  expect(await before.authority()).toEqual(await after.authority());
  expect([after.has("db_1"), after.set("db_1", null), after.has("db_1"), after.has("db_2")]).toEqual([
    true,
    true,
    false,
    true,
  ]);
  expect(await after.address()).toBe("192.0.2.7");
  for (const file of ["authority.json", "ports.json"])
    expect(statSync(join(folder, file)).mode & 0o777).toBe(0o600);
});

it("whoever asks for the authority at the same moment is given the same one", async () => {
  const access = openPublicAccess(join(folder, "at-once"), "0123");
  const [first, second] = await Promise.all([access.authority(), access.authority()]);
  expect(second).toEqual(first);
});

it("an authority that was damaged is made anew, as no server could use it", async () => {
  const file = join(folder, "authority.json");
  const whole = await openPublicAccess(folder, "0123").authority();
  const other = await makeAuthority("Another", new Date());
  const body = whole.certificate.replaceAll(/[A-Za-z0-9]{20}\n/g, "\n");
  for (const damaged of [
    "",
    "{",
    "{}",
    JSON.stringify({ ...whole, certificate: body }),
    JSON.stringify({ ...whole, key: "none" }),
    JSON.stringify({ ...whole, key: other.key }),
  ]) {
    writeFileSync(file, damaged);
    const anew = await openPublicAccess(folder, "0123").authority();
    expect(new X509Certificate(anew.certificate).checkPrivateKey(createPrivateKey(anew.key))).toBe(true);
  }
});
