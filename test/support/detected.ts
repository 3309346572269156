import { detect } from "../../agent/image-build/detect/index.ts";
import type { Overrides } from "../../agent/image-build/detect/sources.ts";
import { generateDockerfile } from "../../agent/image-build/dockerfile/index.ts";
import { sourcesOf } from "./sources.ts";

export type Files = Record<string, string>;
const none: Overrides = { buildCommand: null, startCommand: null };
export const variables = { plain: [], secret: [], cacheId: "site_x-packages" };

export const plan = (files: Files, overrides: Partial<Overrides> = {}) =>
  detect(sourcesOf(files), { ...none, ...overrides });
export const node = (manifest: object, files: Files = {}, overrides: Partial<Overrides> = {}) =>
  plan({ "package.json": JSON.stringify(manifest), ...files }, overrides);
export const dockerfile = (manifest: object, files: Files = {}, overrides: Partial<Overrides> = {}) =>
  generateDockerfile(node(manifest, files, overrides), variables);
