import { createSocket, type Socket } from "node:dgram";
import { mkdirSync, readFileSync, statSync, watch } from "node:fs";
import http from "node:http";
import { dirname } from "node:path";
import { pathToFileURL } from "node:url";
import { addressRecord, readQuestion, recordTypes, reply, serviceRecord } from "./dns.ts";
import { Reachable } from "./reachable.ts";
import { byHostname, emptyTable, noticesByHostname, RouteTable, type Answer } from "./table.ts";
import { Waiting } from "./waiting.ts";

/**
 * Its own small process, which outlives the agent: tells Caddy which container serves a name, and shows a plain page for
 * names that lead nowhere. Answers from a file that the agent replaces as a whole. When its own file is replaced, the next
 * version of it takes over within this process: no port is closed for a moment, and one that cannot begin changes nothing.
 * Arguments: <routes file> <DNS port> <status port>; both ports on the loopback address only.
 */
const [file = "", dnsPort = "", statusPort = ""] = process.argv.slice(2);

/** What a version leaves to the next one: also that of a later release knows these three. */
type Estate = { dns: Socket; status: http.Server; table: RouteTable };
const shared = globalThis as typeof globalThis & { berthResponder?: () => Estate };
const estate = shared.berthResponder?.();

const reachable = new Reachable();
const answerFor = (name: string): Answer => names.get(name) ?? "unknown";
const waiting = new Waiting(answerFor, reachable);
let table = emptyTable;
let names = new Map<string, Answer>();
let notices: ReturnType<typeof noticesByHostname> = new Map();

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
  reachable.keepOnly([...names.values()].flatMap((answer) => (typeof answer === "string" ? [] : answer)));
  waiting.changed();
}
if (estate) answerFrom(estate.table);
mkdirSync(dirname(file), { recursive: true });
load();
const watching = watch(dirname(file), load);
// In case a notification is lost.
const looking = setInterval(() => {
  if (found() !== loaded) load();
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
  dns.removeAllListeners();
  for (const event of ["request", "error"]) status.removeAllListeners(event);
  return { dns, status, table };
}

const suffix = ".up.internal";
/** `re` and `wr`: a request that is sent once more, and must not be told what was true a moment ago. `ws` and `wr`: a WebSocket. */
const asked = /\.(up|re|ws|wr)\.internal$/;
const statusName = `h127-0-0-1${suffix}`;

/** `h10-0-0-7.up.internal` → 10.0.0.7, and so is `w10-…`, by which Caddy counts WebSockets. */
function addressIn(name: string): string | null {
  const match = /^[hw](\d{1,3})-(\d{1,3})-(\d{1,3})-(\d{1,3})\.up\.internal$/.exec(name);
  return match && match.slice(1).every((part) => Number(part) < 256) ? match.slice(1).join(".") : null;
}

const dns = estate?.dns ?? createSocket("udp4");
dns.on("message", (query, from) => {
  const question = readQuestion(query);
  if (!question) return;
  const { name, type } = question;
  const address = addressIn(name);
  const kind = asked.exec(name)?.[1];
  let answer: Buffer;
  if (address !== null)
    answer = reply(query, question, type === recordTypes.A ? [addressRecord(address)] : []);
  else if (kind === undefined) answer = reply(query, question, [], false);
  else if (type !== recordTypes.SRV) answer = reply(query, question, []);
  else {
    const hostname = name.slice(0, -suffix.length);
    const target = waiting.isOut(hostname) ? "out" : answerFor(hostname);
    answer = reply(
      query,
      question,
      typeof target === "string"
        ? [serviceRecord(statusName, Number(statusPort))]
        : reachable
            .among(target)
            .map(({ address, port }) =>
              serviceRecord(
                `${kind.startsWith("w") ? "w" : "h"}${address.replaceAll(".", "-")}${suffix}`,
                port,
              ),
            ),
    );
  }
  dns.send(answer, from.port, from.address);
});
dns.on("error", (error) => {
  console.error(`The responder cannot answer: ${error.message}`);
  process.exit(1);
});
if (!estate) dns.bind(Number(dnsPort), "127.0.0.1");

const page = (
  title: string,
  text: string,
) => `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${title}</title><style>:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;display:grid;place-content:center;min-height:90vh;margin:0;padding:1rem;text-align:center}h1{font-size:1.4rem;margin:0}p{opacity:.7}</style>
<h1>${title}</h1><p>${text}</p></html>`;

const escaped = (text: string) => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

/** Why a stopped site does not answer, and where whoever wants it back pays. */
function parkedPage(hostname: string): string {
  const notice = notices.get(hostname);
  if (!notice) return page("This site is stopped", "Its owner can start it again.");
  const pay =
    notice.payUrl === null
      ? ""
      : ` <a href="${escaped(notice.payUrl)}" rel="nofollow noreferrer">Pay the open invoice</a>, and it starts again by itself.`;
  return page("This site is suspended", `Its term is over and has not been renewed. Its data is kept.${pay}`);
}

const unknownPage = page(
  "There is no site here",
  "Check the address, or wait a moment if the site was just created.",
);
const silentPage = page(
  "This site does not answer",
  "It runs, but takes no requests. Try again in a moment.",
);

function showPage(response: http.ServerResponse, code: number, text: string): void {
  const headers = { "Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store" };
  response.writeHead(code, headers).end(text);
}

const status = estate?.status ?? http.createServer();
status.on("request", (request, response) => {
  // What comes through Caddy carries X-Forwarded-For: only the agent may ask, and it hears of what is in the file now.
  if (request.url === "/.berth/version" && request.headers["x-forwarded-for"] === undefined) {
    load();
    response.end(String(table.version));
    return;
  }
  // Caddy asks before it has a certificate made: only names of this host get one.
  if (request.url?.startsWith("/.berth/certificate?") && request.headers["x-forwarded-for"] === undefined) {
    const name = new URLSearchParams(request.url.split("?")[1]).get("domain")?.toLowerCase() ?? "";
    response.writeHead(names.has(name) ? 200 : 404).end();
    return;
  }
  // Caddy has met nobody: it may try again, or shows this answer.
  if (request.url?.startsWith("/.berth/wait?") && request.headers["x-forwarded-for"] === undefined) {
    const asked = new URLSearchParams(request.url.split("?")[1]).get("name")?.toLowerCase() ?? "";
    void waiting.wait(asked).then((isUp) => {
      if (isUp) response.writeHead(204).end();
      else showPage(response, 502, silentPage);
    });
    return;
  }
  const hostname = (request.headers.host ?? "").replace(/:\d+$/, "").toLowerCase();
  const answer = answerFor(hostname);
  if (answer === "parked") showPage(response, 503, parkedPage(hostname));
  else if (answer === "unknown") showPage(response, 404, unknownPage);
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
