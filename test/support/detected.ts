import { detect } from "../../agent/image-build/detect/index.ts";
import type { Overrides } from "../../agent/image-build/detect/sources.ts";
import { generateDockerfile } from "../../agent/image-build/dockerfile/index.ts";
import type { BuildVariables } from "../../agent/image-build/dockerfile/instructions.ts";
import { sourcesOf } from "./sources.ts";

export type Files = Record<string, string>;
export const none: Overrides = { buildCommand: null, startCommand: null };
export const variables = { plain: [], secret: [], cacheId: "site_x-packages" };

export const plan = (files: Files, overrides: Partial<Overrides> = {}) =>
  detect(sourcesOf(files), { ...none, ...overrides });
/** What makes Dockerfiles of repositories, for builds that get these variables. */
export const dockerfileWith =
  (given: BuildVariables) =>
  (files: Files, overrides: Partial<Overrides> = {}) =>
    generateDockerfile(plan(files, overrides), given);
export const node = (manifest: object, files: Files = {}, overrides: Partial<Overrides> = {}) =>
  plan({ "package.json": JSON.stringify(manifest), ...files }, overrides);
export const dockerfile = (manifest: object, files: Files = {}, overrides: Partial<Overrides> = {}) =>
  dockerfileWith(variables)({ "package.json": JSON.stringify(manifest), ...files }, overrides);
