import { CommanderError } from "@commander-js/extra-typings";
import type { ApiError } from "../client/index.ts";
import { connection, globalOptions } from "./context.ts";
import { exitCodes, Failure, HalfDone, type ExitCode } from "./failure.ts";
import { dim, output, prepareOutput, safe, styled } from "./terminal.ts";

type Told = {
  code: string;
  message: string;
  hint?: string | undefined;
  exitCode: ExitCode;
  details?: unknown;
};

/** Prints why a command failed, on standard error; answers the exit code. */
export async function report(error: unknown): Promise<ExitCode> {
  if (error instanceof CommanderError && error.exitCode === 0) return exitCodes.done;
  // Arguments that are wrong fail before any command runs.
  if (error instanceof CommanderError && !output.color)
    prepareOutput({
      color: !process.argv.includes("--no-color"),
      ...(process.argv.includes("--json") && { json: true }),
    });
  const told = await tell(error);
  if (output.json) {
    const { exitCode, ...body } = told;
    process.stderr.write(`${JSON.stringify({ error: body })}\n`);
    return exitCode;
  }
  process.stderr.write(`${styled("red", "✗")} ${safe(told.message)}\n`);
  if (told.hint !== undefined) process.stderr.write(`  ${dim(safe(told.hint))}\n`);
  return told.exitCode;
}

/** The name of a failure here, which is that of the service's own refusal where there is one. */
const codes: Record<ExitCode, string> = {
  [exitCodes.done]: "done",
  [exitCodes.failure]: "failure",
  [exitCodes.usage]: "usage",
  [exitCodes.signedOut]: "unauthorized",
  [exitCodes.notFound]: "not_found",
  [exitCodes.refused]: "refused",
  [exitCodes.rateLimited]: "rate_limited",
  [exitCodes.paymentNeeded]: "payment_required",
  [exitCodes.interrupted]: "interrupted",
  [exitCodes.unread]: "unread",
};

const unchanged = "Nothing was changed.";
const mayBeDone =
  "The service may have carried out the request all the same: look with `berth activity` before you run the command again.";

async function tell(error: unknown): Promise<Told> {
  if (error instanceof HalfDone) {
    const told = await tell(error.cause);
    return { ...told, hint: `${told.hint?.replace(unchanged, "") ?? ""} ${error.message}`.trim() };
  }
  if (error instanceof Failure)
    return {
      code: codes[error.exitCode],
      message: error.message,
      hint: error.hint,
      exitCode: error.exitCode,
    };
  if (error instanceof CommanderError) {
    const told = tellUsage(error);
    if (!error.message.includes(` command '${process.argv[2]}'`)) return told;
    const paths = await pathsTo(process.argv[2] ?? "");
    // A verb of nearly every noun, as list is, says nothing.
    return paths.length === 0 || paths.length > 6
      ? told
      : { ...told, hint: `Did you mean ${paths.join(", ")}?` };
  }
  const { ApiError: Refusal, NetworkError } = await import("../client/index.ts");
  if (error instanceof Refusal) {
    const told = tellRefusal(error);
    if (error.mayBeDone) return { ...told, hint: told.hint?.replace(unchanged, mayBeDone) };
    // A database's statement that fails may have committed a part of what it did.
    return error.path?.endsWith("/query")
      ? { ...told, hint: told.hint?.replace(unchanged, "").trim() || undefined }
      : told;
  }
  if (error instanceof NetworkError)
    return {
      code: "network",
      message: error.message,
      hint: `\`berth doctor\` checks the address, the connection and the clock.${error.mayBeDone ? ` ${mayBeDone}` : ""}`,
      exitCode: exitCodes.failure,
    };
  // The answer lacks what this program reads of it. Node's own, such as that of an address, have a code.
  if (error instanceof TypeError && !("code" in error))
    return {
      code: "failure",
      message: `The service's answer cannot be shown: ${error.message}.`,
      hint: `This program and the service may have different versions: \`berth upgrade\` installs the one that the service offers. ${mayBeDone}`,
      exitCode: exitCodes.failure,
    };
  return {
    code: "failure",
    message: error instanceof Error ? error.message : String(error),
    exitCode: exitCodes.failure,
  };
}

/** The commands below a noun that have this name: `berth sites restart` for `restart`. */
async function pathsTo(name: string): Promise<string[]> {
  const { createProgram, everyCommand } = await import("./program.ts");
  return everyCommand(createProgram()).flatMap((one) =>
    one.name() === name && one.parent?.parent ? `berth ${one.parent.name()} ${name}` : [],
  );
}

function tellUsage(error: CommanderError): Told {
  const isMissing = error.code === "commander.help";
  const [first = "", ...suggestions] = error.message.replace(/^error: /, "").split("\n");
  const message = isMissing
    ? "Which of these commands?"
    : `${first.charAt(0).toUpperCase()}${first.slice(1)}.`;
  const hint = suggestions.join(" ").replace(/^\(|\)$/g, "") || "Add --help to see what the command accepts.";
  return {
    code: "usage",
    message: message.replace(/\.\.$/, "."),
    // Its help stands above.
    hint: isMissing && !output.json ? undefined : hint,
    exitCode: exitCodes.usage,
  };
}

const refusals: Partial<Record<ApiError["code"], { exitCode: ExitCode; message?: string; hint: string }>> = {
  unauthorized: { exitCode: exitCodes.signedOut, hint: "Sign in with `berth login`." },
  forbidden: {
    exitCode: exitCodes.refused,
    message: "Your account may not do this, or it belongs to another account.",
    hint: "`berth whoami` shows the account and its role.",
  },
  not_found: {
    exitCode: exitCodes.notFound,
    message: "There is no such thing in your account.",
    hint: "Check the id or the name: `berth sites list`, `berth databases list`.",
  },
  payment_required: {
    exitCode: exitCodes.paymentNeeded,
    message: "This needs a payment first.",
    hint: "`berth invoices list` shows what is unpaid, `berth credits` the credits.",
  },
  rate_limited: {
    exitCode: exitCodes.rateLimited,
    message: "Too many requests, and waiting did not help.",
    hint: "Try again in a minute.",
  },
  invalid_request: { exitCode: exitCodes.usage, hint: `Correct this and try again. ${unchanged}` },
  conflict: { exitCode: exitCodes.refused, hint: unchanged },
};

/** A key that is not accepted, and what to do about it where it is from. */
function rejected(): { message: string; hint: string } | undefined {
  const { source, profileName, token } = connection();
  if (token === undefined) return undefined;
  const [key, hint] = {
    "--token": ["given with --token", "Give a valid key."],
    BERTH_TOKEN: [
      "in BERTH_TOKEN",
      "Set BERTH_TOKEN to a valid key, or unset it to use that of the profile.",
    ],
    profile: [
      `of the profile ${profileName}`,
      `Sign in again with \`berth login${globalOptions().profile === undefined ? "" : ` --profile ${profileName}`}\`.`,
    ],
  }[source] as [string, string];
  return {
    message: `The service does not accept the key ${key}: it was revoked, or belongs to another service.`,
    hint,
  };
}

type Details = ApiError["details"];

/** What the refusal itself says to do. */
function ownHint({ invoiceToken, needed }: Details): string | undefined {
  if (typeof invoiceToken === "string") return `Pay it at ${connection().url}/invoice/${invoiceToken}`;
  return typeof needed === "number"
    ? "`berth credits packages` lists packages, `berth credits buy` orders one."
    : undefined;
}

/** What there is, by its name in the paths of the API: in words, and the command that lists it. */
const kinds: Record<string, [string, string]> = {
  sites: ["site", "sites list"],
  deployments: ["deployment", "deployments list"],
  commands: ["job", "jobs list"],
  schedules: ["schedule", "schedules list"],
  domains: ["domain", "domains list"],
  databases: ["database", "databases list"],
  backups: ["backup", "backups list"],
  invoices: ["invoice", "invoices list"],
  conversations: ["conversation", "conversations list"],
  channels: ["channel", "notifications list"],
  packs: ["pack", "packs list"],
  hosts: ["host", "hosts list"],
  jobs: ["work", "queue list"],
  accounts: ["account", "accounts list"],
};

/** What the service does not find, if the path names it: `/deployments/dep_1/logs`. */
function missing(path = ""): { message: string; hint: string } | undefined {
  const parts = path.split("/");
  // What else these are about stands in the body or the query.
  if (["rollback", "restore", "links", "comparison"].includes(parts.at(-1) ?? "")) return undefined;
  const at = parts.findLastIndex((part, index) => index < parts.length - 1 && Object.hasOwn(kinds, part));
  const [word, list] = kinds[parts[at] ?? ""] ?? [];
  if (word === undefined) return undefined;
  const name = decodeURIComponent(parts[at + 1] ?? "");
  return {
    message: `You have no ${word} ${name}.`,
    hint: `\`berth ${list}\` lists them.`,
  };
}

const creditsMissing = ({ balance, needed }: Details): string | undefined =>
  typeof needed === "number"
    ? `This costs ${needed} credit${needed === 1 ? "" : "s"}, and you have ${String(balance)}.`
    : undefined;

function tellRefusal(error: ApiError): Told {
  const known: { exitCode?: ExitCode; message?: string; hint?: string } = {
    ...refusals[error.code],
    ...(error.code === "not_found" && missing(error.path)),
    ...(error.code === "unauthorized" && rejected()),
    ...(error.retryAfterSeconds !== undefined &&
      error.retryAfterSeconds > 90 && {
        hint: `Try again in ${Math.ceil(error.retryAfterSeconds / 60)} minutes.`,
      }),
  };
  const { reason, issues, requestId } = error.details;
  const says = reason ?? (issues ? error.message : creditsMissing(error.details));
  return {
    code: error.code,
    message: says ?? known.message ?? `The service answered ${error.status}: ${error.message}.`,
    hint:
      ownHint(error.details) ??
      // A reason names what there is not, which may be no site or database.
      (error.code === "not_found" && reason !== undefined
        ? undefined
        : (known.hint ??
          (requestId === undefined
            ? unchanged
            : `Give this request id to the service's operator: ${requestId}`))),
    exitCode: known.exitCode ?? (error.status >= 500 ? exitCodes.failure : exitCodes.refused),
    ...(Object.keys(error.details).length > 0 && { details: error.details }),
  };
}
