import { createSocket, type Socket } from "node:dgram";
import { mkdirSync, readFileSync, statSync, watch } from "node:fs";
import http from "node:http";
import { setPriority } from "node:os";
import { dirname } from "node:path";
import { pathToFileURL } from "node:url";
import { wildcardOf } from "../../protocol/wildcards.ts";
import { Attempts } from "./attempts.ts";
import { bundleFor, CertificateFile, certificatesFileOf, mayObtain } from "./certificates.ts";
import { rulesAddress, unknownHeader } from "./caddy.ts";
import { addressRecord, readQuestion, recordTypes, reply, serviceRecord } from "./dns.ts";
import { Reachable } from "./reachable.ts";
import { decide, pinOf, type Asked, type Decision } from "./decide.ts";
import { stillHolds } from "./holder.ts";
import { escaped, page } from "./pages.ts";
import { Forwarder, PeerGate } from "./hop.ts";
import { isHostName, notHostNameText } from "./host-name.ts";
import { isObtained } from "./obtained.ts";
import { Passwords } from "./passwords.ts";
import { peersFileOf, readPeers, type Peers } from "./peers.ts";
import {
  byHostname,
  emptyTable,
  forwardsByHostname,
  noticesByHostname,
  RouteTable,
  rulesByHostname,
  type Answer,
} from "./table.ts";
import { Waiting } from "./waiting.ts";

/**
 * Its own small process, which outlives the agent: tells Caddy which container serves a name, and shows a plain page for
 * names that lead nowhere. Answers from a file that the agent replaces as a whole. When its own file is replaced, the next
 * version of it takes over within this process: no port is closed for a moment, and one that cannot begin changes nothing.
 * Arguments: <routes file> <DNS port> <status port>; both ports on the loopback address only.
 */
const [file = "", dnsPort = "", statusPort = ""] = process.argv.slice(2);
const certificatesFile = certificatesFileOf(file);
const peersFile = peersFileOf(file);

// All sites' requests wait for its answers, which take microseconds. Only root may ask for it.
try {
  setPriority(-10);
} catch {
  // As any other program, then.
}

/** What a version leaves to the next one: also that of a later release knows these three. */
type Estate = { dns: Socket; status: http.Server; table: RouteTable };
const shared = globalThis as typeof globalThis & { berthResponder?: () => Estate };
const estate = shared.berthResponder?.();

const reachable = new Reachable();
/** The name of the table that covers this one: itself, which may be another site's, or a wildcard. */
const covering = (hostname: string): string =>
  names.has(hostname) || forwards.has(hostname) ? hostname : wildcardOf(hostname);
/** Without the containers that have ended since the agent wrote: one of another site may have their address by now. */
function answerFor(name: string): Answer {
  const answer = names.get(covering(name)) ?? "unknown";
  return typeof answer === "string"
    ? answer
    : answer.filter(({ holder }) => holder === undefined || stillHolds(holder));
}
const waiting = new Waiting(answerFor, covering, reachable);
let table = emptyTable;
let names = new Map<string, Answer>();
let notices: ReturnType<typeof noticesByHostname> = new Map();
let ruled: ReturnType<typeof rulesByHostname> = new Map();
let forwards: ReturnType<typeof forwardsByHostname> = new Map();
const passwords = new Passwords();
const attempts = new Attempts();
const forwarder = new Forwarder();
const gate = new PeerGate(Number(statusPort));

let loaded = "";

/** Tells one file from the next: each is replaced as a whole. Empty where there is none. */
function found(name = file): string {
  try {
    const { ino, mtimeNs, size } = statSync(name, { bigint: true });
    return [ino, mtimeNs, size].join();
  } catch {
    return "";
  }
}

function load(): void {
  const now = found();
  try {
    const read = RouteTable.parse(JSON.parse(readFileSync(file, "utf8")));
    loaded = now;
    if (read.version === table.version) return;
    const kept = Object.entries(table.sites).filter(([siteId]) => read.lost?.includes(siteId));
    answerFrom({ ...read, sites: { ...Object.fromEntries(kept), ...read.sites } });
  } catch (error) {
    // Not there yet, or not ours to judge: the last good table goes on answering.
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") console.error(`${file}: ${String(error)}`);
  }
}

function answerFrom(next: RouteTable): void {
  table = next;
  names = byHostname(table);
  notices = noticesByHostname(table);
  ruled = rulesByHostname(table);
  forwards = forwardsByHostname(table);
  meetPeers();
  reachable.keepOnly([...names.values()].flatMap((answer) => (typeof answer === "string" ? [] : answer)));
  waiting.changed();
}

let peers: Peers | null = null;
let readPeersAs = "";

/** What is in the file now; the last good contents if it cannot be read. */
function meetPeers(): void {
  const now = found(peersFile);
  try {
    if (now !== readPeersAs) peers = now === "" ? null : readPeers(peersFile);
    readPeersAs = now;
  } catch (error) {
    console.error(`${peersFile}: ${error instanceof Error ? error.name : "unreadable"}`);
  }
  try {
    gate.apply(peers);
    forwarder.apply(peers, [...forwards.values()]);
  } catch (error) {
    // A key or certificate that is none: the copies here answer.
    console.error(`Requests pass to and from no other host: ${String(error)}`);
  }
}
if (estate) answerFrom(estate.table);
mkdirSync(dirname(file), { recursive: true });
load();
const watching = watch(dirname(file), () => {
  if (found() !== loaded) load();
  meetPeers();
});
// In case a notification is lost.
const looking = setInterval(() => {
  if (found() !== loaded) load();
  meetPeers();
  takeTurns();
}, 1000).unref();

const program = import.meta.filename;
let begun = new URL(import.meta.url).search.slice(1) || found(program);

/** The file of this program is another one by now: that one goes on. */
function takeTurns(): void {
  const now = found(program);
  if (now === "" || now === begun || !program.endsWith(".mjs")) return;
  begun = now;
  shared.berthResponder = leave;
  import(`${pathToFileURL(program).href}?${now}`).catch((error: unknown) => {
    console.error(`The next version of the responder does not run: ${String(error)}`);
    // It had begun: whoever supervises this starts it by itself.
    if (shared.berthResponder !== leave) process.exit(1);
  });
}

function leave(): Estate {
  delete shared.berthResponder;
  watching.close();
  clearInterval(looking);
  gate.close();
  forwarder.close();
  dns.removeAllListeners();
  for (const event of ["request", "error"]) status.removeAllListeners(event);
  return { dns, status, table };
}

const suffix = ".up.internal";
/**
 * `in`: a request without a body, whose answer may be a decision. `re` and `wr`: a request that is sent once more, and must not be told what was true a moment ago. `ws` and `wr`: a WebSocket.
 * With a `d` before it: a request that was decided on. The first label of its name says which replica is to have it.
 * With a `p`: another host passed it on, and it is passed on no further.
 */
const asked = /\.([dp]?)(up|in|re|ws|wr)\.internal$/;
const statusName = `h127-0-0-1${suffix}`;
/** At the port of the status page nobody listens there: Caddy is refused, and asks how long to wait. */
const nobodysName = `h127-0-0-9${suffix}`;

/**
 * `h10-0-0-7.up.internal` → 10.0.0.7, and so is `w10-…`, by which Caddy counts WebSockets. `hi…` and `wi…` are Caddy itself, by
 * which it counts those of a site with rules, `hd…` is the responder, which decides on them, and `hf…` and `wf…` lead to another host.
 */
function addressIn(name: string): string | null {
  if (/^[hw]i[0-9a-f]{16}(?:-[0-9a-z]+)?\.up\.internal$/.test(name)) return rulesAddress;
  if (/^(?:hd|[hw]f)[0-9a-f]{16}\.up\.internal$/.test(name)) return "127.0.0.1";
  const match = /^[hw](\d{1,3})-(\d{1,3})-(\d{1,3})-(\d{1,3})\.up\.internal$/.exec(name);
  return match && match.slice(1).every((part) => Number(part) < 256) ? match.slice(1).join(".") : null;
}

/** Whether other hosts may ask for this name: for no other site do they speak. */
const hasArrived = (hostname: string): boolean =>
  peers?.sites.some((siteId) =>
    table.sites[siteId]?.hostnames.some((name) => name.toLowerCase() === covering(hostname)),
  ) ?? false;

/** Where a request goes. @param name the visitor's host, behind the label of a replica where it was decided on */
function services(name: string, kind: string, origin: string) {
  const isDecided = origin === "d";
  const hostname = isDecided ? name.slice(name.indexOf(".") + 1) : name;
  const letter = kind.startsWith("w") ? "w" : "h";
  // A wildcard would cover it.
  if (!isHostName(hostname)) return [serviceRecord(statusName, Number(statusPort))];
  if (origin === "p" && !hasArrived(hostname)) return [serviceRecord(statusName, Number(statusPort))];
  const forward = origin === "" ? forwards.get(covering(hostname)) : undefined;
  const forwardPort = forward ? forwarder.portTo(forward) : null;
  // Its rules are those of the other host.
  if (forward && forwardPort !== null)
    return [serviceRecord(`${letter}f${forward.label}${suffix}`, forwardPort)];
  const rules = ruled.get(covering(hostname));
  if (!isDecided && rules) {
    const decider = kind === "in" && !waiting.isOut(hostname) ? "d" : "i";
    const label = `${letter}${decider}${rules.label}${letter === "w" ? rules.socketLabel : ""}`;
    return [serviceRecord(`${label}${suffix}`, Number(statusPort))];
  }
  const target = waiting.isOut(hostname) ? "out" : answerFor(hostname);
  if (typeof target === "string") return [serviceRecord(statusName, Number(statusPort))];
  if (target.length === 0) return [serviceRecord(nobodysName, Number(statusPort))];
  const reached = reachable.among(target);
  const pinned = isDecided
    ? rules?.targets.filter((one) => pinOf(one) === name.slice(0, name.indexOf("."))).map(textOf)
    : undefined;
  const own = reached.filter((one) => pinned?.includes(textOf(one)));
  return (own.length > 0 ? own : reached).map(({ address, port }) =>
    serviceRecord(`${letter}${address.replaceAll(".", "-")}${suffix}`, port),
  );
}

const textOf = ({ address, port }: { address: string; port: number }) => `${address}:${port}`;

const dns = estate?.dns ?? createSocket("udp4");
dns.on("message", (query, from) => {
  const question = readQuestion(query);
  if (!question) return;
  const { name, type } = question;
  const address = addressIn(name);
  const [kindSuffix = "", origin = "", kind] = asked.exec(name) ?? [];
  let answer: Buffer;
  if (address !== null)
    answer = reply(query, question, type === recordTypes.A ? [addressRecord(address)] : []);
  else if (kind === undefined) answer = reply(query, question, [], false);
  else if (type !== recordTypes.SRV) answer = reply(query, question, []);
  else answer = reply(query, question, services(name.slice(0, -kindSuffix.length), kind, origin));
  dns.send(answer, from.port, from.address);
});
dns.on("error", (error) => {
  console.error(`The responder cannot answer: ${error.message}`);
  process.exit(1);
});
if (!estate) dns.bind(Number(dnsPort), "127.0.0.1");

/** Why a stopped site does not answer, and where whoever wants it back pays. */
function parkedPage(hostname: string): string {
  const notice = notices.get(covering(hostname));
  if (!notice) return page("This site is stopped", "Its owner can start it again.");
  // Nothing is due: its account is suspended.
  if (notice.payUrl === null) return page("This site is suspended", "Its data is kept.");
  const pay = `<a href="${escaped(notice.payUrl)}" rel="nofollow noreferrer">Pay the open invoice</a>`;
  return page(
    "This site is suspended",
    `Its term has ended and has not been renewed. Its data is kept. ${pay}, and it starts again automatically.`,
  );
}

const unknownPage = page(
  "There is no site here",
  "Check the address, or wait a moment if the site was just created.",
);
const silentPage = page(
  "This site does not answer",
  "It is running, but accepts no requests. Try again in a moment.",
);

function showPage(
  response: http.ServerResponse,
  code: number,
  text: string,
  more: Record<string, string> = {},
): void {
  const headers = { "Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store", ...more };
  response.writeHead(code, headers).end(text);
}

let certificates: CertificateFile | null = null;
let readCertificates = "";

/** What is in the file now; the last good contents if it cannot be read. */
function certificatesNow(): CertificateFile | null {
  const now = found(certificatesFile);
  if (now === readCertificates) return certificates;
  try {
    certificates = CertificateFile.parse(JSON.parse(readFileSync(certificatesFile, "utf8")));
    readCertificates = now;
  } catch (error) {
    if (now !== "")
      console.error(`${certificatesFile}: ${error instanceof Error ? error.name : "unreadable"}`);
  }
  return certificates;
}

/** Caddy asks before it loads one that it has, too: no bound is in the way of that, nor of its renewal. */
function mayHave(name: string): boolean {
  const kept = certificatesNow();
  const now = new Date();
  if (!names.has(name) || !mayObtain(name, table.sites, kept ?? { certificates: [], awaited: null }, now))
    return false;
  return !kept?.place || isObtained(kept.place, name, now) !== false || attempts.begin(name);
}

function showBundle(url: string, response: http.ServerResponse): void {
  const [path = "", query = ""] = url.split("?");
  const kept = certificatesNow();
  if (!kept || path.slice("/.berth/certificates/".length) !== kept.addressKey) {
    response.writeHead(204).end();
    return;
  }
  const bundle = bundleFor(
    new URLSearchParams(query).get("server_name") ?? "",
    kept.certificates,
    new Date(),
  );
  if (bundle === null) response.writeHead(204).end();
  else response.writeHead(200, { "Content-Type": "application/x-pem-file" }).end(bundle);
}

/** What Caddy says of a request in headers of its own making; the visitor's are in none of the others. */
function askedIn({ headers }: http.IncomingMessage): Asked {
  const text = (name: string) => {
    const value = headers[`berth-${name}`];
    return typeof value === "string" ? value : "";
  };
  return {
    host: text("host"),
    hostname: text("host").replace(/:\d+$/, "").toLowerCase(),
    uri: text("uri"),
    isHttps: text("proto") === "https",
    address: text("address"),
    authorization: text("authorization"),
    cookie: text("cookie"),
    bodyBytes: Number(text("length")) || 0,
  };
}

/** 204 lets the request pass; anything else is shown as it is. */
function tell(response: http.ServerResponse, decision: Decision, hostname: string): void {
  if ("status" in decision) {
    const headers = { "Content-Type": "text/html; charset=utf-8", ...decision.headers };
    response.writeHead(decision.status, headers).end(decision.html);
    return;
  }
  const { uri, headers, setCookie, pin, isAuthorized, maxBodyMb } = decision.pass;
  const [, path = "", query = ""] = /^([^?]*)(.*)$/s.exec(uri ?? "") ?? [];
  response.writeHead(204, {
    "Berth-Upstream": `${pin}.${hostname}`,
    // Caddy replaces the path by an expression, in which `$` has a meaning.
    ...(uri !== undefined && { "Berth-Path": path.replaceAll("$", "$$$$"), "Berth-Query": query }),
    // For a Caddy that was started before these two were, until the agent has replaced it.
    ...(uri !== undefined && uri.length < 8000 && { "Berth-Uri": uri }),
    ...(setCookie !== undefined && { "Set-Cookie": setCookie }),
    ...(isAuthorized && { "Berth-Authorized": "yes" }),
    ...(maxBodyMb !== undefined && { "Berth-Body": String(maxBodyMb) }),
    ...Object.fromEntries(
      Object.entries(headers).flatMap(([name, value], index) => [
        [`Berth-Name-${index}`, name],
        [`Berth-Value-${index}`, value],
      ]),
    ),
  });
  response.end();
}

/** The visitor's own request, as Caddy sends it on. */
const askedBy = ({ headers, url = "" }: http.IncomingMessage, hostname: string): Asked => ({
  host: headers.host ?? "",
  hostname,
  uri: url,
  isHttps: headers["x-forwarded-proto"] === "https",
  address: String(headers["x-real-ip"] ?? ""),
  authorization: headers.authorization ?? "",
  cookie: headers.cookie ?? "",
  bodyBytes: 0,
});

async function decideOn(question: Asked, response: http.ServerResponse): Promise<void> {
  const site = ruled.get(covering(question.hostname));
  try {
    // Its rules were taken away a moment ago.
    if (!site) return tell(response, passPlainly, question.hostname);
    tell(response, await decide(question, site.rules, site, passwords.check), question.hostname);
  } catch (error) {
    console.error(`A request could not be decided on: ${String(error)}`);
    if (!response.headersSent)
      showPage(response, 500, page("Something went wrong", "Try again in a moment."));
  }
}

const isSentToDecide = ({ method, headers }: http.IncomingMessage): boolean =>
  (method === "GET" || method === "HEAD") && headers["x-forwarded-for"] !== undefined;

const domainIn = (url: string): string =>
  new URLSearchParams(url.split("?")[1]).get("domain")?.toLowerCase() ?? "";

const passPlainly: Decision = { pass: { headers: {}, pin: "p-any", isAuthorized: false } };

/** As long as what Caddy lets through, and what it says beside it. */
const status = estate?.status ?? http.createServer({ maxHeaderSize: 128 * 1024 });
// Older versions of Node silently drop headers beyond 1,000: X-Forwarded-For, which tells a visitor from Caddy, could be among them.
status.maxHeadersCount = 0;
status.on("request", (request, response) => {
  // What comes through Caddy carries X-Forwarded-For.
  const isOwn = request.headers["x-forwarded-for"] === undefined;
  // Only the agent may ask, and it hears of what is in the file now.
  if (request.url === "/.berth/version" && isOwn) {
    load();
    response.end(String(table.version));
    return;
  }
  // Caddy asks before it has a certificate made, or renewed: only names of this host get one. Not each one below a wildcard, whose
  // own certificate the control plane sends.
  if (request.url?.startsWith("/.berth/certificate?") && isOwn) {
    response.writeHead(mayHave(domainIn(request.url)) ? 200 : 404).end();
    return;
  }
  if (request.url?.startsWith("/.berth/certificate/wanted?") && isOwn) {
    attempts.want(domainIn(request.url));
    response.writeHead(204).end();
    return;
  }
  // Caddy asks at a handshake: what the control plane sent, or 204, and Caddy obtains one by itself.
  if (request.url?.startsWith("/.berth/certificates/") && isOwn) {
    showBundle(request.url, response);
    return;
  }
  // A site with rules: Caddy asks before it passes a request on.
  if (request.url?.split("?")[0] === "/.berth/decision" && isOwn) {
    void decideOn(askedIn(request), response);
    return;
  }
  // Caddy has met nobody: it may try again, or shows this answer.
  if (request.url?.startsWith("/.berth/wait?") && isOwn) {
    const asked = new URLSearchParams(request.url.split("?")[1]).get("name")?.toLowerCase() ?? "";
    void waiting.wait(asked).then((isUp) => {
      if (isUp) response.writeHead(204).end();
      else showPage(response, 502, silentPage);
    });
    return;
  }
  const hostname = (request.headers.host ?? "").replace(/:\d+$/, "").toLowerCase();
  if (!isHostName(hostname)) {
    response.writeHead(400, { "Content-Type": "text/plain" }).end(notHostNameText);
    return;
  }
  const answer = answerFor(hostname);
  if (answer === "parked") showPage(response, 503, parkedPage(hostname));
  else if (answer === "unknown") showPage(response, 404, unknownPage, { [unknownHeader]: "yes" });
  else if (isSentToDecide(request) && !waiting.isOut(hostname))
    void decideOn(askedBy(request, hostname), response);
  else showPage(response, 502, silentPage);
});
status.on("error", (error) => {
  console.error(`The status page cannot be served: ${error.message}`);
  process.exit(1);
});
if (!estate) status.listen(Number(statusPort), "127.0.0.1");

// Started by a supervisor over a pipe: when that is gone, so is the reason to run.
if (!estate && process.env["BERTH_EXIT_WITH_PARENT"] === "1")
  process.stdin.on("end", () => process.exit(0)).resume();
