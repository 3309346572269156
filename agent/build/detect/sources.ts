/**
 * What detection looks at: paths below the root of the app, folders with a slash at the end, and the text of the files
 * that say how it is built. Written by strangers.
 */
export type Sources = {
  files: ReadonlySet<string>;
  texts: ReadonlyMap<string, string>;
  workspace?: Workspace | null;
};
/** What an app below the root of a repository is installed by, and its own folder there. */
export type Workspace = { root: Sources; folder: string };
export type Overrides = { buildCommand: string | null; startCommand: string | null };

export const textOf = ({ texts }: Sources, name: string): string => texts.get(name) ?? "";

/** Those of the names that are there, in their order. */
export const present = ({ files }: Sources, names: readonly string[]): string[] =>
  names.filter((name) => files.has(name));

/** The command of the `web` process of a Procfile. */
export const procfileWeb = (sources: Sources): string | null =>
  /^web:[ \t]*(\S.*)$/m.exec(textOf(sources, "Procfile"))?.[1]?.trim() ?? null;

/** What a Procfile asks for beside that, and nobody does. */
export const procfileNotes = (sources: Sources): string[] =>
  /^release:[ \t]*\S/m.test(textOf(sources, "Procfile"))
    ? [
        "The Procfile's release command is not run: put it before the start command (migrate && serve), or run it by POST /sites/:id/commands.",
      ]
    : [];

/** Debian packages: `build` are installed where dependencies are compiled, `run` where the app runs. */
export type SystemPackages = { build: string[]; run: string[] };
