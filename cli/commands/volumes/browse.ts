import { writeFileSync } from "node:fs";
import type { Answer, Client } from "../../../client/index.ts";
import { command } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { Failure, usage } from "../../failure.ts";
import { siteId } from "../../site.ts";
import { bold, dim, output, safe, say, show, showValue, size, table, when } from "../../terminal.ts";

type Browsed = Answer<"browseFiles">;

const browse = async (client: Client, volume: string, path: string): Promise<Browsed> =>
  client.call("browseFiles", { id: await siteId(client), volume, path }, { signal });

export const listFiles = command("ls", "The files of a folder in a volume", "browseFiles")
  .argument("<volume>", "its name: berth volumes list")
  .argument("[path]", "a folder or file in it", "/")
  .action(async (volume, path) => {
    const found = await browse(await connect(), volume, path);
    show("browseFiles", found, (one) =>
      one.kind === "file" ? `${bold(safe(one.path))}  ${size(one.sizeBytes / 1024 ** 2)}` : folderText(one),
    );
  });

const folderText = ({ entries, truncated }: Extract<Browsed, { kind: "folder" }>): string =>
  table(
    entries,
    {
      name: ({ name, kind }) => (kind === "folder" ? bold(`${safe(name)}/`) : safe(name)),
      kind: ({ kind }) => kind,
      bytes: ({ sizeBytes }) => (sizeBytes === null ? "" : String(sizeBytes)),
      modified: ({ modifiedAt }) => when(modifiedAt),
    },
    "Empty.",
  ) + (truncated ? `\n${dim("… and more")}` : "");

/** The whole text of a file; the service shows the first 128 KiB of texts. */
function wholeText(found: Browsed): string {
  if (found.kind === "folder")
    throw usage(`${safe(found.path)} is a folder.`, "`berth volumes ls` lists it.");
  if (found.text === null)
    throw new Failure(`${safe(found.path)} is not UTF-8 text.`, {
      hint: "Send it out of a terminal in the site: berth terminal.",
    });
  return found.text;
}

export const printFile = command(
  "cat",
  "Print a text file from a volume, at most 128 KiB of it",
  "browseFiles",
)
  .argument("<volume>")
  .argument("<path>")
  .action(async (volume, path) => {
    const found = await browse(await connect(), volume, path);
    if (output.json) return show("browseFiles", found, () => "");
    process.stdout.write(wholeText(found));
    if (found.truncated) say(dim("… the file continues"));
  });

export const copyFile = command(
  "cp",
  "Copy a text file of up to 128 KiB from a volume to this computer",
  "savedFile",
)
  .argument("<volume>")
  .argument("<path>")
  .argument("<file>", "where to; an existing file is not replaced")
  .action(async (volume, path, file) => {
    const found = await browse(await connect(), volume, path);
    const text = wholeText(found);
    if (found.truncated)
      throw new Failure(`${safe(found.path)} is larger than 128 KiB.`, {
        hint: "Send it out of a terminal in the site: berth terminal.",
      });
    try {
      writeFileSync(file, text, { flag: "wx" });
    } catch (error) {
      throw usage(`${file} was not written: ${(error as Error).message}.`);
    }
    showValue(
      "savedFile",
      { file, bytes: Buffer.byteLength(text) },
      () => `Wrote ${safe(file)}. Secret values are masked in it.`,
    );
  });
