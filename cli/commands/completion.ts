import { command } from "../command.ts";
import { usage } from "../failure.ts";
import { showValue } from "../terminal.ts";

type Node = {
  name(): string;
  aliases(): string[];
  description(): string;
  parent: unknown;
  commands: readonly Node[];
  options: readonly { long?: string | undefined; short?: string | undefined; description: string }[];
};

const shells = ["bash", "zsh", "fish"] as const;

export const completion = command(
  "completion",
  "A script that completes commands and options in your shell",
  "completion",
)
  .argument("<shell>", "bash, zsh or fish")
  .action((shell, _options, self) => {
    const known = shells.find((one) => one === shell);
    if (known === undefined) throw usage(`There is no completion for ${shell}.`, "Give bash, zsh or fish.");
    const text = script(known, self.parent as unknown as Node);
    showValue("completion", { shell: known, script: text }, () => text);
  });

/** Every path of commands, with the words that may follow it. */
function wordsByPath(root: Node): Map<string, { word: string; description: string }[]> {
  const global = optionsOf(root);
  const all = new Map<string, { word: string; description: string }[]>();
  const walk = (node: Node, path: string) => {
    const commands = node.commands.map((one) => ({ word: one.name(), description: one.description() }));
    all.set(path, [
      ...commands,
      ...(node === root ? [] : optionsOf(node)),
      ...global,
      { word: "--help", description: "show help" },
    ]);
    for (const child of node.commands)
      for (const name of [child.name(), ...child.aliases()]) walk(child, `${path} ${name}`.trim());
  };
  walk(root, "");
  return all;
}

const optionsOf = (node: Node) =>
  node.options.flatMap(({ long, description }) => (long === undefined ? [] : [{ word: long, description }]));

/** Inside single quotes of a shell. */
const quoted = (text: string): string => text.replaceAll("'", `'\\''`);

/** The words of the line that are commands: all before the first that no path has. */
function script(shell: (typeof shells)[number], root: Node): string {
  const paths = [...wordsByPath(root)];
  if (shell === "fish") return fish(paths);
  const cases = paths
    .map(
      ([path, words]) =>
        `    '${quoted(path)}') words='${quoted(words.map(({ word }) => word).join(" "))}' ;;`,
    )
    .join("\n");
  const find = `  local path='' word words=''
  for word in "\${before[@]}"; do
    case "$word" in -*) continue ;; esac
    case " $known " in *" \${path:+$path/}$word "*) path="\${path:+$path/}$word" ;; esac
  done
  case "\${path//\\// }" in
${cases}
  esac`;
  const known = paths
    .map(([path]) => path.replaceAll(" ", "/"))
    .filter(Boolean)
    .join(" ");
  if (shell === "bash")
    return `# Completion of berth for bash: berth completion bash > ~/.local/share/bash-completion/completions/berth
_berth() {
  local known='${known}'
  local before=("\${COMP_WORDS[@]:1:COMP_CWORD-1}")
${find}
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _berth berth`;
  return `#compdef berth
# Completion of berth for zsh: berth completion zsh > a folder of $fpath, as _berth
_berth() {
  emulate -L zsh
  local known='${known}'
  local -a before=("\${(@)words[2,CURRENT-1]}")
${find.replace("local path='' word words=''", "local path='' word choices=''").replaceAll("words='", "choices='").replace("local choices=''", "")}
  compadd -- \${=choices} || _files
}
if [ "$funcstack[1]" = "_berth" ]; then _berth "$@"; else compdef _berth berth; fi`;
}

function fish(paths: [string, { word: string; description: string }[]][]): string {
  const lines = paths.flatMap(([path, words]) =>
    words.map(
      ({ word, description }) =>
        `complete -c berth -n '__berth_at "${path}"' -f -a '${quoted(word)}' -d '${quoted(description)}'`,
    ),
  );
  const known = paths.map(([path]) => `'${quoted(path)}'`).join(" ");
  return `# Completion of berth for fish: berth completion fish > ~/.config/fish/completions/berth.fish
function __berth_at
  set -l path ''
  for word in (commandline -opc)[2..]
    string match -q -- '-*' $word; and continue
    set -l next (string trim "$path $word")
    contains -- $next ${known}; and set path $next
  end
  test "$path" = "$argv[1]"
end
${lines.join("\n")}`;
}
