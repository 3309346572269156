import { command } from "../../command.ts";
import { connect } from "../../context.ts";
import { usage } from "../../failure.ts";
import { findSite } from "../../site.ts";
import { dim, safe, say, showValue } from "../../terminal.ts";
import { existsSync } from "node:fs";
import { writeWhole } from "../../files.ts";

export const pullEnv = command(
  "pull",
  "Write a site's variables to a .env file, without secrets",
  "variablesPulled",
)
  .argument("[file]", "where to; - is standard output", ".env")
  .option("--force", "replace the file")
  .action(async (file, options) => {
    const isFile = file !== "-";
    if (isFile && existsSync(file) && !options.force)
      throw usage(`${file} already exists.`, "Give another name, or --force to replace it.");
    const { envVariables } = await findSite(await connect());
    const { envLine } = await import("../../../client/index.ts");
    const known = envVariables.flatMap(({ key, value }) => (value === null ? [] : [{ key, value }]));
    const secrets = envVariables.filter(({ value }) => value === null).map(({ key }) => key);
    const comment =
      secrets.length === 0 ? "" : `# Secrets, which Berth does not show: ${secrets.join(", ")}\n`;
    const text = known.map(({ key, value }) => `${envLine(key, value)}\n`).join("");
    const written = known.map(({ key }) => key);
    if (isFile) {
      writeWhole(file, comment + text, 0o600);
      showValue(
        "variablesPulled",
        { file, written, secrets },
        () => `Wrote ${written.length} variable${written.length === 1 ? "" : "s"} to ${file}.`,
      );
    } else process.stdout.write(comment + text);
    if (secrets.length > 0) say(dim(`Omitted because they are secret: ${secrets.map(safe).join(", ")}`));
  });
