import type { SourceInspection } from "../../../protocol/api/sources.ts";
import { AppError } from "../../domain/app-error.ts";
import { Callout } from "../kit/parts.tsx";
import { inLabels } from "../kit/setting-labels.ts";

/** What a host says of a repository, or why it was not asked. */
export type Checked = { found: SourceInspection | null; problem: string | null };

/** Why a repository was not looked at, for a person. */
export function whyNotChecked({ code, message, extra }: AppError): string {
  if (code === "rate_limited")
    return "Too many repositories were checked within a minute. Try again in a minute.";
  if (code === "invalid_request")
    return "The address, branch, folder or token is not valid. Write the address as github.com/owner/repository.";
  return typeof extra["reason"] === "string" ? extra["reason"] : message;
}

/** In one sentence: "a Node.js 22 app (Express), built with npm". */
function summary(found: SourceInspection): string {
  const language = [found.language, found.languageVersion].filter(Boolean).join(" ");
  const what =
    found.builder === "dockerfile"
      ? "A Dockerfile"
      : found.isStatic
        ? "A static site"
        : language === ""
          ? "An app"
          : `A ${language} app`;
  const by = [found.framework, found.packageManager].filter(Boolean).join(", ");
  return `${what}${by === "" ? "" : ` (${by})`} on branch ${found.branch ?? found.defaultBranch ?? "main"}.`;
}

const rowsOf = (found: SourceInspection): [string, string | null][] => [
  ["Install", found.installCommand],
  ["Build", found.buildCommand],
  ["Start", found.isStatic && found.builder !== null ? "its files are served" : found.startCommand],
  ["Release", found.releaseCommand],
  ["Port", found.port === null ? null : String(found.port)],
  ["Variables", found.variables.join(", ")],
  ["Connects to", found.databases.join(", ")],
  ["Folders with apps", found.rootDirs.join(", ")],
];

/** The result of a check, beside the repository's fields. */
export const Found = ({ checked: { found, problem } }: { checked: Checked }) => {
  const rows = found?.reachable ? rowsOf(found).filter(([, value]) => value) : [];
  return (
    <Callout
      tone={problem === null ? "good" : "warn"}
      title={problem === null ? "The repository can be built as is" : "Before you pay"}
    >
      <p>{problem === null ? found && summary(found) : inLabels(problem)}</p>
      {rows.length > 0 && (
        <dl>
          {rows.map(([name, value]) => (
            <>
              <dt>{name}</dt>
              <dd>
                <code>{value}</code>
              </dd>
            </>
          ))}
        </dl>
      )}
      {found?.notes.map((note) => (
        <p class="soft small">{inLabels(note)}</p>
      ))}
    </Callout>
  );
};
