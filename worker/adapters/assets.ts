import { CliProgram, HostPrograms } from "../domain/install-script.ts";

/** One of the files that hosts and people install; null if the Worker was deployed without them. */
export async function installFile(assets: Fetcher, name: string): Promise<Response | null> {
  const response = await assets.fetch(new Request(`https://assets.local/install/${name}`));
  return response.ok ? response : null;
}

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
