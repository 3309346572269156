import * as z from "zod";
import { CliProgram, HostPrograms } from "../domain/install-script.ts";

async function fileAt(assets: Fetcher, path: string): Promise<Response | null> {
  const response = await assets.fetch(new Request(`https://assets.local/${path}`));
  return response.ok ? response : null;
}

/** One of the files that hosts and people install; null if the Worker was deployed without them. */
export const installFile = (assets: Fetcher, name: string) => fileAt(assets, `install/${name}`);

export async function installTemplate(assets: Fetcher): Promise<string | null> {
  return (await (await installFile(assets, "install.sh"))?.text()) ?? null;
}

export async function hostPrograms(assets: Fetcher): Promise<HostPrograms | null> {
  const manifest = await (await installFile(assets, "manifest.json"))?.json();
  return HostPrograms.safeParse(manifest).data ?? null;
}

export async function cliTemplate(assets: Fetcher): Promise<string | null> {
  return (await (await installFile(assets, "cli.sh"))?.text()) ?? null;
}

export async function cliProgram(assets: Fetcher): Promise<CliProgram | null> {
  return CliProgram.safeParse(await (await installFile(assets, "cli.json"))?.json()).data ?? null;
}

/** A file of the pages, by its name with its hash; null if there is none. */
export const webFile = (assets: Fetcher, name: string) => fileAt(assets, `assets/${name}`);

const Names = z.record(z.string(), z.string());
let names: Readonly<Record<string, string>> | undefined;

/** The names with hashes by plain names (`style.css`); empty if the Worker was deployed without the pages' files. */
export async function webNames(assets: Fetcher): Promise<Readonly<Record<string, string>>> {
  if (names) return names;
  const manifest = await (await webFile(assets, "manifest.json").catch(() => null))?.json();
  const read = Names.safeParse(manifest).data;
  if (read) names = read;
  return read ?? {};
}
