/** The records of one name and type (RFC 2181, section 5). */
export type RecordSet = {
  /** In lower case, without the final dot. */
  name: string;
  type: "A" | "AAAA" | "TXT";
  contents: string[];
  ttlSeconds: number;
  /** Served through the provider's own network. */
  proxied: boolean;
};

/** A set as a zone has it. A name may have one that this installation created and one that it did not. */
export type FoundSet = Omit<RecordSet, "type"> & {
  type: string;
  ours: boolean;
  /** The provider's identifiers, in the order of `contents`; empty if it has none. */
  ids: string[];
};

/** `wanted` null: removes `found`. `found` null: creates `wanted`. */
export type ZoneChange =
  | { wanted: RecordSet; found: FoundSet | null }
  | { wanted: null; found: FoundSet & { ours: true } };

/** A name that Berth leaves alone because of a record that somebody else created. */
export type ZoneConflict = { name: string; type: string; found: string };

export type ZonePlan = { changes: ZoneChange[]; conflicts: ZoneConflict[] };

const addressTypes = ["A", "AAAA"];
/** No other data may be beside these, or the provider answers addresses from them. */
const exclusiveTypes = ["CNAME", "DNAME", "ALIAS", "LUA", "NS"];

/** Whether a record of this type at the same name answers instead of, or besides, the wanted one. */
const competes = (wanted: RecordSet["type"], found: string): boolean =>
  exclusiveTypes.includes(found) ||
  found === wanted ||
  (addressTypes.includes(wanted) && addressTypes.includes(found));

const keyOf = ({ name, type }: { name: string; type: string }): string => `${name}/${type}`;

const isAs = (found: FoundSet, wanted: RecordSet): boolean =>
  found.ttlSeconds === wanted.ttlSeconds &&
  found.proxied === wanted.proxied &&
  found.contents.toSorted().join("\n") === wanted.contents.toSorted().join("\n");

/**
 * The changes that turn this installation's own records into the wanted ones. Sets of others are never part of a
 * change; where one competes with a wanted set, none is created and the conflict is reported. Challenges and corrections
 * come first, because somebody waits for them.
 * @param wanted one set per name and type
 */
export function planZone(wanted: readonly RecordSet[], found: readonly FoundSet[]): ZonePlan {
  const own = new Map(found.filter(({ ours }) => ours).map((set) => [keyOf(set), set]));
  const foreign = Map.groupBy(
    found.filter(({ ours }) => !ours),
    ({ name }) => name,
  );
  const kept = new Set(wanted.map(keyOf));
  const plan: ZonePlan = { changes: [], conflicts: [] };
  for (const set of wanted) {
    const rival = foreign.get(set.name)?.find(({ type }) => competes(set.type, type));
    if (rival)
      plan.conflicts.push({
        name: set.name,
        type: set.type,
        found: `${rival.type} ${rival.contents.join(", ")}`.slice(0, 300),
      });
    const present = own.get(keyOf(set)) ?? null;
    if (present ? !isAs(present, set) : !rival) plan.changes.push({ wanted: set, found: present });
  }
  for (const set of own.values())
    if (!kept.has(keyOf(set))) plan.changes.push({ wanted: null, found: { ...set, ours: true } });
  plan.changes.sort((one, other) => urgency(one) - urgency(other));
  return plan;
}

/** Less is more urgent. */
export const urgency = ({ wanted, found }: ZoneChange): number =>
  wanted?.type === "TXT" ? 0 : wanted && found ? 1 : wanted ? 2 : 3;

/** Visitors follow a move within this time. */
const siteTtlSeconds = 60;

export type SiteAddress = { hostname: string; ipv4: string | null; ipv6: string | null };
export type Challenge = { name: string; value: string };

/** What a zone should contain: the addresses of each site's host, and the challenges of certificates being issued. */
export function wantedSets(
  sites: readonly SiteAddress[],
  challenges: readonly Challenge[],
  { proxied }: { proxied: boolean },
): RecordSet[] {
  const addresses = sites.flatMap(({ hostname, ipv4, ipv6 }) =>
    [["A", ipv4] as const, ["AAAA", ipv6] as const].flatMap(([type, content]) =>
      content === null
        ? []
        : // Proxied records have no TTL of their own: Cloudflare reports 1, "automatic".
          [
            {
              name: hostname,
              type,
              contents: [content],
              ttlSeconds: proxied ? 1 : siteTtlSeconds,
              proxied,
            },
          ],
    ),
  );
  const texts = [...Map.groupBy(challenges, ({ name }) => name)].map(([name, all]) => ({
    name,
    type: "TXT" as const,
    contents: [...new Set(all.map(({ value }) => value))],
    ttlSeconds: siteTtlSeconds,
    proxied: false,
  }));
  return [...addresses, ...texts];
}

/** Milliseconds until the next attempt after so many failures in a row: one minute, then up to five. */
export const retryMs = (failures: number): number => Math.min(5, 2 ** Math.max(0, failures - 1)) * 60_000;
