import { execFileSync, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";
import { bundleCli } from "../../scripts/lib/bundle.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** What people have beside the command: the shells that complete it, and what sets its man page. */
const folder = temporaryFolder();
const program = join(folder, "berth.mjs");
beforeAll(() => bundleCli(program));
const completion = (shell: string) =>
  execFileSync(process.execPath, [program, "completion", shell], {
    encoding: "utf8",
    env: { PATH: process.env["PATH"], HOME: folder },
  });

it("zsh takes its script for completion, and offers what follows", () => {
  // zle, which calls the function, needs a terminal: its words are given here, and what it would offer is printed.
  const offered = (...words: string[]) =>
    execFileSync(
      "zsh",
      [
        "-f",
        "-c",
        `compdef() { :; }; eval "$1"; shift
        compadd() { shift; print -rl -- "$@"; }; words=("$@"); CURRENT=$#; _berth`,
        "zsh",
        completion("zsh"),
        ...words,
      ],
      { encoding: "utf8" },
    )
      .trim()
      .split("\n");
  expect(offered("berth", "dep")).toEqual(expect.arrayContaining(["deploy", "deployments", "--json"]));
  expect(offered("berth", "db", "cre")).toEqual(expect.arrayContaining(["create", "connect"]));
  expect(offered("berth", "db", "cre")).not.toContain("deploy");
  expect(offered("berth", "--json", "logs", "--fol")).toContain("--follow");
});

it("fish takes its script for completion, and offers what follows", () => {
  const file = join(folder, "berth.fish");
  writeFileSync(file, completion("fish"));
  const offered = (line: string) =>
    execFileSync("fish", ["--no-config", "-c", `source ${file}; complete --do-complete "${line}"`], {
      encoding: "utf8",
      env: { PATH: process.env["PATH"], HOME: folder },
    })
      .trim()
      .split("\n")
      .map((one) => one.split("\t")[0]);
  expect(offered("berth dep")).toEqual(["deploy", "deployments"]);
  expect(offered("berth deployments ca")).toEqual(["cancel"]);
  expect(offered("berth db cre")).toEqual(["create", "credentials"]);
  expect(offered("berth --json logs --fol")).toEqual(["--follow"]);
});

it("the man page is set without a warning, with every command in it", () => {
  const page = spawnSync("groff", ["-man", "-ww", "-Tutf8", "-P-c", "cli/berth.1"], { encoding: "utf8" });
  expect([page.status, page.stderr]).toEqual([0, ""]);
  const plain = page.stdout.replaceAll(/.[\b]/g, "");
  for (const text of ["berth deploy", "berth databases connect", "EXIT STATUS", "this site, database …"])
    expect(plain).toContain(text);
});
