import { jsonIn } from "../../../protocol/json.ts";
import { JobError } from "../../job.ts";
import { tableIn } from "./parse.ts";

/** What detection reads of composer.json. Written by strangers: a property may be anything where it is unknown. */
export type ComposerJson = {
  repositories?: unknown;
  require?: { php?: unknown };
  autoload?: unknown;
  config?: { platform?: { php?: unknown } };
  scripts?: object | null;
  extra?: Record<string, unknown> | null;
};

/** @throws JobError when it is there and not JSON */
export function readComposerJson(text: string): ComposerJson {
  if (text === "") return {};
  const value = jsonIn(text);
  if (typeof value === "object" && value !== null) return value;
  throw new JobError("composer.json is not valid JSON: correct it and deploy again.");
}

const scaffold = "drupal/core-composer-scaffold";

/** The folder in which a plugin of Drupal's makes the page that is served; null where it makes none. */
export function drupalFolder(composer: ComposerJson): string | null {
  if (tableIn(composer, "require")?.[scaffold] === undefined) return null;
  if (tableIn(composer, "config", "allow-plugins")?.[scaffold] === false) return null;
  const folder = tableIn(composer, "extra", "drupal-scaffold", "locations")?.["web-root"];
  const [, named = "."] =
    /^(?:\.\/)?([\w-]+(?:\/[\w-]+)*)\/?$/.exec(typeof folder === "string" ? folder : "") ?? [];
  return named;
}

/**
 * They fill caches, which an app does by itself once it runs, with the variables that it has then; or they copy `.env.example`, by which the app would be in
 * development.
 */
const leftOut =
  /^php (?:-r\b|artisan (?:optimize|package:discover|(?:cache|config|event|route|view):(?:cache|clear))|bin\/console cache:(?:clear|warmup))/;

/**
 * The commands of PHP that Composer runs after an install (https://getcomposer.org/doc/articles/scripts.md), those of Symfony's Flex included. Composer
 * itself is not where the app's extensions are, so that its scripts are run without it: their callbacks and other programs are left out.
 */
export function scriptsOf({ scripts, extra }: ComposerJson): string[] {
  const publicFolder = extra?.["public-dir"];
  const root = typeof publicFolder === "string" ? publicFolder.replace(/\/$/, "") : "public";
  const left = new Map(Object.entries(scripts ?? {}) as [string, unknown][]);
  const commands: string[] = [];
  const stack: unknown[] = ["@post-install-cmd", "@post-autoload-dump"];
  while (stack.length > 0) {
    const [, called = "", rest] = /^@([\w-]+)(?: +(\S.*))?$/.exec(String(stack.pop())) ?? [];
    const listed = left.get(called);
    left.delete(called);
    if (called === "php") commands.push(`php ${rest}`);
    else if (typeof listed === "string" || Array.isArray(listed))
      for (const one of [listed].flat().toReversed()) stack.push(one);
    else
      for (const [command, type] of Object.entries(listed ?? {}))
        if (type === "symfony-cmd") commands.push(`php bin/console ${command.replace("%PUBLIC_DIR%", root)}`);
  }
  return commands.filter((command) => !leftOut.test(command));
}
