import type { Plan } from "./detect/index.ts";
import { defaultNode } from "./detect/node-version.ts";
import { baseImages, type BaseImages } from "./dockerfile/instructions.ts";

/** The image of the version that a plan asks for, where it asks for one. */
function askedFor(plan: Plan): Partial<BaseImages> {
  if (plan.kind === "python" && plan.version !== null)
    return { python: `python:${plan.version}-slim-bookworm` };
  if (plan.kind === "ruby" && plan.version !== null) return { ruby: `ruby:${plan.version}-slim-bookworm` };
  const node = plan.kind === "node" || plan.kind === "site" ? plan : "assets" in plan ? plan.assets : null;
  return node === null || node.major === defaultNode ? {} : { node: `node:${node.major}-bookworm-slim` };
}

/** The base images for a plan; where the version asked for cannot be had, the usual one and a note that says so. */
export async function chooseBaseImages(
  plan: Plan,
  canHave: (image: string) => Promise<boolean>,
): Promise<{ images: BaseImages; notes: string[] }> {
  const images = { ...baseImages };
  const notes: string[] = [];
  for (const [role, image] of Object.entries(askedFor(plan)) as [keyof BaseImages, string][])
    if (await canHave(image)) images[role] = image;
    else notes.push(`This host cannot get ${image}: ${baseImages[role]} is used instead.`);
  return { images, notes };
}
