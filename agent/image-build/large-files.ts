import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { chmod, mkdir, rename, stat } from "node:fs/promises";
import http from "node:http";
import https from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import * as z from "zod";
import { gitLogin } from "../../protocol/git-token.ts";
import { jsonIn } from "../../protocol/json.ts";
import type { HostSettings } from "../host.ts";
import { JobError } from "../job.ts";
import { publicAddressOf } from "./address.ts";
import type { Pointer } from "./check-source.ts";
import type { GitSource } from "./fetch-source.ts";

/** https://github.com/git-lfs/git-lfs/blob/main/docs/api/batch.md */
const mediaType = "application/vnd.git-lfs+json";
const Batch = z.object({
  transfer: z.literal("basic").optional(),
  objects: z.array(
    z.object({
      oid: z.string(),
      actions: z
        .object({
          download: z
            .object({ href: z.string(), header: z.record(z.string(), z.string()).optional() })
            .optional(),
        })
        .optional(),
      error: z.object({ code: z.number(), message: z.string() }).optional(),
    }),
  ),
});
type Download = { href: string; header?: Record<string, string> | undefined };

const objectsAtOnce = 100;
const downloadsAtOnce = 6;
const answerBytesMax = 4 * 1024 * 1024;
const silenceMs = 30_000;

/** Puts the files that Git LFS keeps in the place of their pointers, each checked by size and SHA-256. @throws JobError */
export async function fetchLargeFiles(
  source: GitSource,
  folder: string,
  pointers: readonly Pointer[],
  settings: HostSettings,
  signal: AbortSignal,
): Promise<void> {
  const temporary = `${folder}.lfs`;
  await mkdir(temporary, { recursive: true, mode: 0o700 });
  for (let from = 0; from < pointers.length; from += objectsAtOnce) {
    const page = pointers.slice(from, from + objectsAtOnce);
    const downloads = await askBatch(source, page, settings, signal);
    const waiting = [...page.entries()];
    const work = async () => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        const [index, pointer] = next;
        const download = downloads.get(pointer.oid);
        if (!download) throw failed(pointer.path, "the server does not offer it");
        const file = join(temporary, `${from + index}`);
        await fetchObject(source, pointer, download, file, settings, signal);
        const place = join(folder, pointer.path);
        await chmod(file, (await stat(place)).mode & 0o777);
        await rename(file, place);
      }
    };
    await Promise.all(Array.from({ length: downloadsAtOnce }, work));
  }
}

const failed = (path: string, why: string) =>
  new JobError(`${path} could not be fetched from Git LFS: ${why}.`);

async function askBatch(
  source: GitSource,
  pointers: readonly Pointer[],
  settings: HostSettings,
  signal: AbortSignal,
): Promise<Map<string, Download>> {
  const address = source.address.replace(/(\.git)?$/, ".git");
  const [host = ""] = address.split("/");
  const scheme = settings.insecureGitHosts.includes(host) ? "http" : "https";
  const what = `The Git LFS server of ${source.address}`;
  const objects = [...new Map(pointers.map(({ oid, size }) => [oid, { oid, size }])).values()];
  const response = await ask(
    new URL(`${scheme}://${address}/info/lfs/objects/batch`),
    {
      method: "POST",
      headers: { Accept: mediaType, "Content-Type": mediaType, ...authorization(source) },
      body: JSON.stringify({ operation: "download", transfers: ["basic"], objects, hash_algo: "sha256" }),
    },
    settings,
    signal,
    what,
  );
  let text = "";
  response.setEncoding("utf8");
  for await (const chunk of response as AsyncIterable<string>)
    if ((text += chunk).length > answerBytesMax) throw new JobError(`${what} returned too much.`);
  if (response.statusCode === 401 || response.statusCode === 403)
    throw new JobError(`${what} needs a token: set gitToken to one that may read the repository.`);
  if (response.statusCode !== 200)
    throw new JobError(
      `${what} answered ${response.statusCode}: check that the repository uses Git LFS there.`,
    );
  const batch = Batch.safeParse(jsonIn(text));
  if (!batch.success) throw new JobError(`${what} returned something other than Git LFS.`);
  const pathOf = new Map(pointers.map(({ oid, path }) => [oid, path]));
  const downloads = new Map<string, Download>();
  for (const { oid, actions, error } of batch.data.objects) {
    const path = pathOf.get(oid);
    if (path !== undefined && error)
      throw failed(path, `the server answered ${error.code} ${error.message.slice(0, 200)}`);
    if (actions?.download) downloads.set(oid, actions.download);
  }
  return downloads;
}

const authorization = ({ token }: GitSource): Record<string, string> =>
  token === null ? {} : { Authorization: `Basic ${Buffer.from(gitLogin(token)).toString("base64")}` };

/** Set by the request itself, whatever a server names. */
const ownHeaders = /^(host|connection|content-length|transfer-encoding|upgrade|expect|te|trailer)$/i;

async function fetchObject(
  source: GitSource,
  { path, oid, size }: Pointer,
  { href, header = {} }: Download,
  file: string,
  settings: HostSettings,
  signal: AbortSignal,
): Promise<void> {
  const url = URL.canParse(href) ? new URL(href) : null;
  if (!url) throw failed(path, "the server names no address for it");
  const given = Object.fromEntries(Object.entries(header).filter(([name]) => !ownHeaders.test(name)));
  const isSameHost = url.host === source.address.split("/")[0]?.toLowerCase();
  const response = await ask(
    url,
    { method: "GET", headers: { ...(isSameHost && authorization(source)), ...given } },
    settings,
    signal,
    path,
  );
  if (response.statusCode !== 200) {
    response.destroy();
    throw failed(path, `the server answered ${response.statusCode}`);
  }
  const hash = createHash("sha256");
  let bytes = 0;
  await pipeline(
    response,
    async function* (chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) {
        bytes += chunk.length;
        if (bytes > size) throw failed(path, `it is larger than the ${size} bytes the repository says`);
        hash.update(chunk);
        yield chunk;
      }
    },
    createWriteStream(file, { flags: "wx", mode: 0o600 }),
    { signal },
  ).catch((error: unknown) => {
    if (error instanceof JobError || signal.aborted) throw error;
    throw failed(path, "the connection broke");
  });
  if (bytes !== size) throw failed(path, `it has ${bytes} bytes, the repository says ${size}`);
  if (hash.digest("hex") !== oid) throw failed(path, "it is not the file that the repository names");
}

/** One request by the rules of Git's own: https to a public address that stays the same, no redirect. @throws JobError */
async function ask(
  url: URL,
  request: { method: string; headers: Record<string, string>; body?: string },
  settings: HostSettings,
  signal: AbortSignal,
  what: string,
): Promise<http.IncomingMessage> {
  const isLocal = url.protocol === "http:" && settings.insecureGitHosts.includes(url.host);
  if (
    !isLocal &&
    (url.protocol !== "https:" || url.port !== "" || url.username !== "" || url.password !== "")
  )
    throw failed(what, `${url.protocol}//${url.host} is not an https address on port 443`);
  const address = isLocal ? null : await publicAddressOf(url.hostname.replace(/^\[|\]$/g, ""));
  const send = isLocal ? http.request : https.request;
  const lookup: LookupFunction = (_name, options, found) => {
    const pinned = { address: address ?? "", family: isIP(address ?? "") };
    if (options.all) found(null, [pinned]);
    else found(null, pinned.address, pinned.family);
  };
  return new Promise((resolve, reject) => {
    const outgoing = send(url, {
      method: request.method,
      headers: request.headers,
      agent: false,
      signal,
      timeout: silenceMs,
      ...(address !== null && { lookup }),
    });
    outgoing.once("response", resolve);
    outgoing.once("timeout", () => outgoing.destroy(new Error("silent")));
    outgoing.once("error", (error) =>
      reject(signal.aborted ? error : failed(what, `${url.host} could not be reached`)),
    );
    outgoing.end(request.body);
  });
}
