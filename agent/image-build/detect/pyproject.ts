import { JobError } from "../../job.ts";
import { parseToml, type Table } from "./parse.ts";
import { textOf, type Sources } from "./sources.ts";

/** @throws JobError when it is there and not TOML: without it, an app would be built without its packages */
export function pyprojectOf(sources: Sources): Table {
  const pyproject = parseToml(textOf(sources, "pyproject.toml"));
  if (pyproject !== null) return pyproject;
  throw new JobError("pyproject.toml is not valid TOML, or larger than 256 KB: correct it and deploy again.");
}
