import { command } from "../command.ts";
import { clientFor, connection, signal } from "../context.ts";
import { Failure, usage } from "../failure.ts";
import { replaceFile } from "../files.ts";
import { say, showValue } from "../terminal.ts";
import { existsSync, readFileSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { version } from "../version.ts";

export const upgrade = command(
  "upgrade",
  "Replace this program with the version that the service offers",
  "upgraded",
).action(async () => {
  const { url } = connection();
  const client = await clientFor(url, undefined);
  const manifest = (await (await client.file({ url: `${url}/install/cli.json` }, { signal })).json()) as {
    version?: unknown;
    sha256?: unknown;
  };
  const { version: to, sha256 } = manifest;
  if (typeof to !== "string" || typeof sha256 !== "string")
    throw new Failure(`${url} offers no command line program.`, {
      hint: "Install it from npm: npm install --global @berth/cli",
    });
  const own = realpathSync(process.argv[1] ?? "");
  if (!own.endsWith("berth.mjs") && !own.endsWith("/berth"))
    throw usage(`${own} was not installed as one file.`, "Upgrade it as you installed it, such as with npm.");
  const { createHash } = await import("node:crypto");
  const sha256Of = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");
  const isOffered = sha256Of(readFileSync(own)) === sha256;
  const bytes = Buffer.from(
    await (await client.file({ url: `${url}/install/berth.mjs` }, { signal })).arrayBuffer(),
  );
  if (sha256Of(bytes) !== sha256)
    throw new Failure("The download is damaged: its SHA-256 does not match the announced one.", {
      hint: "Nothing was changed. Try again.",
    });
  replaceFile(own, bytes, 0o755);
  // Where the installer puts it; the program works without it.
  const manPage = join(dirname(own), "..", "share", "man", "man1", "berth.1");
  if (existsSync(manPage))
    try {
      const page = await client.file({ url: `${url}/install/berth.1` }, { signal });
      replaceFile(manPage, Buffer.from(await page.arrayBuffer()), 0o644);
    } catch (error) {
      if (signal.aborted) throw error;
      say("Its man page could not be replaced.");
    }
  showValue("upgraded", { from: version, to }, () =>
    isOffered
      ? `${to} is the current version.`
      : `Upgraded from ${version} to ${version === to ? "another build of " : ""}${to}.`,
  );
});
