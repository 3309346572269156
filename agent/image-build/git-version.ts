import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** From which on it keeps to the address that was checked (`http.curloptResolve`); others ignore the setting. */
const oldest = { major: 2, minor: 37 };

/** Why the host's Git does not do, and what to do; null if it does. */
export async function unfitGit(): Promise<string | null> {
  const said = await promisify(execFile)("git", ["--version"], { timeout: 10_000 }).catch(() => null);
  const [, version, major, minor] = /\b((\d+)\.(\d+)\S*)/.exec(said?.stdout ?? "") ?? [];
  if (version === undefined)
    return "Git does not run on this host, so no repository can be fetched: install it.";
  const isOld =
    Number(major) < oldest.major || (Number(major) === oldest.major && Number(minor) < oldest.minor);
  return isOld
    ? `Git ${version} on this host is old: it does not stay on the public address that was checked, so a tenant's repository could lead it to addresses in private networks. Install Git 2.37 or newer (on Ubuntu 22.04 from the PPA git-core/ppa).`
    : null;
}
