import { readFile } from "node:fs/promises";
import type { Question } from "../../protocol/agent/running.ts";
import type { Browsed } from "../../protocol/api/files.ts";
import { redactor } from "../../protocol/redact.ts";
import type { Engine } from "../docker/engine.ts";
import { label } from "../docker/labels.ts";
import { secretsIn, siteLabels } from "../docker/specs.ts";
import { servingIds, type Ingress } from "../ingress/ingress.ts";
import { browse, NotShown, NotThere } from "./browse.ts";

type Means = { engine: Engine; ingress: Ingress; agentId: string };
type Asked = Pick<Extract<Question, { kind: "files" }>, "siteId" | "path" | "volume" | "masks">;

/** Of the first container in service, with its volumes in their places, or of a volume. @throws NotShown */
export async function browseSite(
  { engine, ingress, agentId }: Means,
  { siteId, path, volume, masks }: Asked,
): Promise<Browsed> {
  const containers = await Promise.all(servingIds(ingress, siteId).map((id) => engine.inspectContainer(id)));
  const running = containers.find((one) => one?.running && one.pid > 0);
  const secrets = containers.flatMap((one) => (one ? secretsIn(one) : []));
  const redact = redactor([...masks, ...secrets]);
  const found = await browse(await rootOf(), path, isStillIt);
  return found.kind === "file" && found.text !== null ? { ...found, text: redact(found.text) } : found;

  /** The process may have ended, and its id may be that of another one. */
  async function isStillIt(): Promise<boolean> {
    if (volume !== null || !running) return true;
    const groups = await readFile(`/proc/${running.pid}/cgroup`, "utf8").catch(() => "");
    return groups.includes(running.id);
  }

  async function rootOf(): Promise<string> {
    if (volume !== null) {
      const volumes = await engine.volumes({ ...siteLabels(siteId), [label.agent]: agentId });
      const folder = volumes.find(({ labels }) => labels[label.volume] === volume)?.folder;
      if (folder === undefined) throw new NotThere("The host has no such volume for the site.");
      return folder;
    }
    if (!running) throw new NotShown("The site is not running: name a volume, or start the site.");
    return `/proc/${running.pid}/root`;
  }
}
