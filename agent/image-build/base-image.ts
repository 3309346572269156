import type { Plan } from "./detect/plan.ts";
import { baseImages, type BaseImages } from "./dockerfile/instructions.ts";

const dotnet = "mcr.microsoft.com/dotnet";

/** The images of the versions that a plan asks for, where it asks for any; of a role's, the first that can be had. */
function askedFor(plan: Plan): [role: keyof BaseImages, images: string[]][] {
  const version = "version" in plan ? plan.version : null;
  const node =
    plan.kind === "node" || plan.kind === "site"
      ? plan
      : plan.kind === "elixir"
        ? plan.npm
        : "assets" in plan
          ? plan.assets
          : null;
  const asked: [keyof BaseImages, string[]][] = [];
  if (plan.kind === "php" && version !== null) asked.push(["php", [`php:${version}-apache`]]);
  if ((plan.kind === "python" || plan.kind === "ruby") && version !== null) {
    const versions = new Set([version, version.replace(/^(\d\.\d+)\.\d+$/, "$1")]);
    // Releases of Ruby from before bookworm have no image of it, and Bundler takes no other; buster's packages are gone.
    const debians = plan.kind === "ruby" ? ["bookworm", "bullseye"] : ["bookworm"];
    const images = [...versions].flatMap((one) =>
      debians.map((debian) => `${plan.kind}:${one}-slim-${debian}`),
    );
    asked.push([plan.kind, images]);
  }
  if (plan.kind === "java" && version !== null) {
    asked.push(["jre", [`eclipse-temurin:${version}-jre`]]);
    if (plan.wrapped) asked.push(["jdk", [`eclipse-temurin:${version}-jdk`]]);
    else if (plan.tool === "maven") asked.push(["maven", [`maven:3-eclipse-temurin-${version}`]]);
    else asked.push(["gradle", [`gradle:8-jdk${version}`]]);
  }
  if (plan.kind === "go" && version !== null) asked.push(["go", [`golang:${version}-bookworm`]]);
  if (plan.kind === "rust" && version !== null) asked.push(["rust", [`rust:${version}-bookworm`]]);
  if (plan.kind === "elixir" && version !== null) {
    const versions = new Set([version, version.replace(/^(\d+\.\d+).*$/, "$1")]);
    asked.push(["elixir", [...versions].map((one) => `elixir:${one}-slim`)]);
  }
  if (plan.kind === "deno" && version !== null) asked.push(["deno", [`denoland/deno:debian-${version}`]]);
  if (plan.kind === "dotnet") {
    const sdks = [plan.sdk, version].filter((one) => one !== null);
    if (version !== null) asked.push(["dotnet", [`${dotnet}/aspnet:${version}`]]);
    if (sdks.length > 0) asked.push(["dotnetSdk", sdks.map((one) => `${dotnet}/sdk:${one}`)]);
  }
  if (node !== null) asked.push(["node", [`node:${node.major}-bookworm-slim`]]);
  return asked;
}

/** The base images for a plan; where the version asked for cannot be had, the usual one and a note that says so. */
export async function chooseBaseImages(
  plan: Plan,
  canHave: (image: string) => Promise<boolean>,
): Promise<{ images: BaseImages; notes: string[] }> {
  const images = { ...baseImages };
  const notes: string[] = [];
  for (const [role, asked] of askedFor(plan)) {
    if (images[role] === asked[0]) continue;
    for (const image of asked)
      if (await canHave(image)) {
        images[role] = image;
        break;
      }
    if (images[role] !== asked[0])
      notes.push(`This host cannot get ${asked[0]}: ${images[role]} is used instead.`);
  }
  return { images, notes };
}
