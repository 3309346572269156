import { promisify } from "node:util";

/** What a program answers; null where it has no answer, or is not there. */
async function answerOf(program: string, args: string[]): Promise<string | null> {
  // By import(): it takes several milliseconds, which help and --version need not wait for.
  const { execFile } = await import("node:child_process");
  try {
    const { stdout } = await promisify(execFile)(program, args, { maxBuffer: 1_000_000, windowsHide: true });
    return stdout.trim() || null;
  } catch {
    return null;
  }
}

/** One line of Git's answer; null where it has none: no Git, no checkout, no such thing. */
const git = (...args: string[]): Promise<string | null> => answerOf("git", args);

/** The root of the checkout that the working directory is in. */
export const checkoutRoot = (): Promise<string | null> => git("rev-parse", "--show-toplevel");
export const currentCommit = (): Promise<string | null> => git("rev-parse", "--verify", "HEAD");
/** The branch that is checked out; null where none is, or where it has no commit yet and so exists in name only. */
export const currentBranch = async (): Promise<string | null> =>
  (await currentCommit()) === null ? null : git("symbolic-ref", "--quiet", "--short", "HEAD");

/** The site that `berth link` noted for this checkout: in its own Git configuration, which is never committed. */
export const linkedSite = (): Promise<string | null> => git("config", "--local", "--get", "berth.site");
export async function linkSite(id: string): Promise<boolean> {
  await git("config", "--local", "berth.site", id);
  return (await linkedSite()) === id;
}
export const unlinkSite = (): Promise<string | null> => git("config", "--local", "--unset-all", "berth.site");

/** The remote `origin` as host/owner/repository; null if it is elsewhere. */
export async function originAddress(): Promise<string | null> {
  const url = await git("remote", "get-url", "origin");
  const address = url === null ? null : repositoryAddress(url);
  if (address === null || /^(?:https?|git):/.test(url ?? "")) return address;
  const [host = "", ...path] = address.split("/");
  return [await hostOf(host), ...path].join("/");
}

/** The server that a name stands for in the person's own configuration of SSH, which the service does not have. */
async function hostOf(name: string): Promise<string> {
  // A name that others know too: SSH may only go another way to it, such as to ssh.github.com.
  if (/\.[a-z]{2,}$/i.test(name)) return name;
  const settings = await answerOf("ssh", ["-G", "--", name]);
  return /^hostname (\S+)$/m.exec(settings ?? "")?.[1] ?? name;
}

/**
 * The address of a remote, in any form that Git takes over a network, without scheme and credentials. It keeps `.git`: a
 * server may know the repository by that name only.
 */
export function repositoryAddress(url: string): string | null {
  // host:8443/repository is an address with a port, as Berth writes it, and no folder 8443 by SSH.
  const [, scpHost, scpPath] = /^(?:[^@/]+@)?([^:/]+):(?!\/)(?!\d+\/)(.+)$/.exec(url) ?? [];
  const isUrl = /^(https?|ssh|git):\/\//.test(url) && URL.canParse(url);
  const parsed = isUrl ? new URL(url) : null;
  const host = parsed ? (parsed.protocol.startsWith("http") ? parsed.host : parsed.hostname) : scpHost;
  const path = parsed ? parsed.pathname : scpPath;
  if (host === undefined || path === undefined) return null;
  const address = `${host}/${path.replace(/^\/+/, "").replace(/\/+$/, "")}`;
  return address.includes("/") && !address.endsWith("/") ? address : null;
}

/** How many commits the current branch has that its remote branch does not; null if it follows none. */
export async function commitsNotPushed(): Promise<number | null> {
  const count = await git("rev-list", "--count", "@{upstream}..HEAD");
  return count === null ? null : Number(count);
}
