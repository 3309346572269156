import * as z from "zod";
import type { Addresses, CaaRecord } from "../domain/resolved-records.ts";

/** DNS as the world sees it. Every method @throws if no resolver answers */
export type Dns = {
  /** Those at the end of the name's CNAMEs, which `aliases` lists in their order. */
  addresses(name: string): Promise<Addresses>;
  /** The name that this one is an alias of, by a CNAME record; empty: by none. */
  alias(name: string): Promise<string[]>;
  /** The TXT records of a name, each with its strings joined. */
  texts(name: string): Promise<string[]>;
  /** The CAA records of this very name, or of what it is an alias of. */
  caa(name: string): Promise<CaaRecord[]>;
};

const Answer = z.object({
  Status: z.number(),
  Answer: z.array(z.object({ type: z.number(), data: z.string() })).default([]),
});
type Found = z.infer<typeof Answer>["Answer"];

/** RFC 1035, 3596 and 8659. */
const types = { A: 1, CNAME: 5, TXT: 16, AAAA: 28, CAA: 257 } as const;
type RecordType = keyof typeof types;

/** Resolvers that speak DNS over HTTPS in its JSON form. Their answers are merged, because their caches differ. */
export function dnsOverHttps(endpoints: readonly string[]): Dns {
  const of = async (name: string, type: RecordType) => resolve(endpoints, name, type);
  return {
    async addresses(name) {
      const [v4, v6] = await Promise.all([of(name, "A"), of(name, "AAAA")]);
      return {
        v4: unique(dataOf(v4, "A")),
        v6: unique(dataOf(v6, "AAAA").map(canonical)),
        aliases: unique([...dataOf(v4, "CNAME"), ...dataOf(v6, "CNAME")].map(plainName)),
      };
    },
    // Not what it leads to: resolvers would remember for long that there is nothing yet.
    alias: async (name) => unique(dataOf(await of(name, "CNAME"), "CNAME").map(plainName)).slice(0, 1),
    texts: async (name) => unique(dataOf(await of(name, "TXT"), "TXT").map(joined)),
    caa: async (name) => dataOf(await of(name, "CAA"), "CAA").flatMap((data) => caaOf(data) ?? []),
  };
}

const unique = (list: string[]): string[] => [...new Set(list)];
const dataOf = (found: Found, type: RecordType): string[] =>
  found.filter((one) => one.type === types[type]).map(({ data }) => data);
const plainName = (name: string): string => name.toLowerCase().replace(/\.$/, "");

async function resolve(endpoints: readonly string[], name: string, type: RecordType): Promise<Found> {
  const answers = await Promise.allSettled(endpoints.map((endpoint) => ask(endpoint, name, type)));
  const found = answers.filter((answer) => answer.status === "fulfilled");
  if (found.length === 0) throw new Error("No DNS resolver answered", { cause: answers });
  return found.flatMap(({ value }) => value);
}

/** NOERROR, and NXDOMAIN: the name does not exist (RFC 1035, section 4.1.1). */
const definite = [0, 3];

async function ask(endpoint: string, name: string, type: RecordType): Promise<Found> {
  const url = new URL(endpoint);
  url.searchParams.set("name", name);
  url.searchParams.set("type", type);
  const response = await fetch(url, {
    headers: { Accept: "application/dns-json" },
    signal: AbortSignal.timeout(5000),
  });
  if (!response.ok) throw new Error(`${url.host} answered ${response.status}`);
  const { Status, Answer: found } = Answer.parse(await response.json());
  if (!definite.includes(Status)) throw new Error(`${url.host} answered with RCODE ${Status}`);
  return found;
}

/** A TXT record consists of one or more quoted strings, which are concatenated (RFC 1035, section 3.3.14). */
const joined = (data: string): string =>
  data.startsWith('"') ? [...data.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, part]) => part).join("") : data;

/** RFC 5952, so that two forms of one address are equal. */
function canonical(address: string): string {
  try {
    return new URL(`http://[${address}]`).hostname.slice(1, -1);
  } catch {
    return address;
  }
}

/** In its own form (`0 issue "ca.example"`, RFC 8659), or as bytes (`\# 22 00 05 …`, RFC 3597). */
function caaOf(data: string): CaaRecord | null {
  const bytes = /^\\# \d+ ([0-9A-Fa-f ]+)$/.exec(data)?.[1];
  if (bytes !== undefined) {
    const [flags = 0, length = 0, ...rest] = Buffer.from(bytes.replaceAll(" ", ""), "hex");
    const text = Buffer.from(rest).toString("latin1");
    return { flags, tag: text.slice(0, length).toLowerCase(), value: text.slice(length) };
  }
  const match = /^(\d{1,3}) ([A-Za-z0-9]+) "?(.*?)"?$/.exec(data);
  return match && { flags: Number(match[1]), tag: (match[2] ?? "").toLowerCase(), value: match[3] ?? "" };
}
