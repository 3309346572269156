import { GitAddress } from "../../protocol/api/sites.ts";
import { JobError } from "../job.ts";

/** What is longer is only slow to read. */
const mostCharacters = 2048;

/**
 * Where a submodule lies, as `host/owner/repo`: an https address, or a relative one, which is read from its parent's as Git
 * does. Plain http is for the hosts that the operator named. @throws JobError
 */
export function moduleAddress(parent: string, url: string, insecureHosts: readonly string[]): string {
  if (url.length > mostCharacters)
    throw new JobError(`${shown(url)} is far too long for a repository address: correct .gitmodules.`);
  if (/^\.\.?\//.test(url)) return checked(relative(parent, url), url);
  const [, scheme, rest] = /^(https?):\/\/(.*)$/s.exec(url) ?? [];
  if (rest === undefined || (scheme === "http" && !insecureHosts.includes(rest.split("/")[0] ?? "")))
    throw new JobError(`${shown(url)} is not an https address: use one, or a relative one, in .gitmodules.`);
  return checked(rest, url);
}

function relative(parent: string, url: string): string {
  const parts = parent.split("/");
  for (const part of url.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== ".") parts.push(part);
    if (parts.length === 0) break;
  }
  return parts.join("/");
}

function checked(address: string, url: string): string {
  const plain = address.replace(/\/+$/, "");
  if (!GitAddress.safeParse(plain).success)
    throw new JobError(
      `${shown(url)} is not a repository address: use https://host/owner/repo, or a relative one, in .gitmodules.`,
    );
  return plain;
}

const shown = (url: string) => JSON.stringify(url.slice(0, 200));

/** A site's token is for its own repository's host and owner; nobody else sees it. */
export function sharesToken(ofToken: string, other: string): boolean {
  const [host, owner] = ofToken.split("/");
  const [otherHost, otherOwner] = other.split("/");
  return host?.toLowerCase() === otherHost?.toLowerCase() && owner === otherOwner;
}
