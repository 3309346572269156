/** Of tini, env and shells, before what they could not run. */
const runner = String.raw`(?:exec |env: ['‘]?|: (?:line )?\d+: |sh: )`;
const notFound = (name: string) =>
  new RegExp(
    String.raw`${runner}(${name})(?:\\r)?['’]?(?: failed: |: )(?:No such file or directory|not found|command not found)$`,
  );

/** What apps lack at their first start that came up elsewhere, by what one of their lines tells; `$1` is what the last sign found. */
const known: [signs: RegExp[], advice: string][] = [
  [
    [/exec format error|: \d+: .?ELF.{0,200}not found/i],
    `its program is built for another processor: build it for that of this host, ${process.arch}`,
  ],
  [
    // A name with a slash is looked for nowhere else, so the file may well be there.
    [notFound(String.raw`[\w.-]*\/[^\s:']{1,200}`)],
    "there is no $1, or not the program that its first line names, as in a script with Windows line ends: mend it or the start command",
  ],
  [
    [notFound(String.raw`[\w.+-]{1,100}`)],
    "the image has no program $1: install it where the image is built, or mend the start command",
  ],
  [
    [new RegExp(String.raw`${runner}(\/?[^\s:]{1,200})(?: failed)?: Permission denied$`)],
    "$1 is not to be run: make it executable, as by chmod +x, if it is a program",
  ],
  [
    [/error while loading shared libraries: ([^\s:]{1,100}):/],
    "the image that runs lacks the library $1: install the package that has it there",
  ],
  [
    [/Missing `secret_key_base`|Missing encryption key to decrypt|MessageEncryptor::InvalidMessage/],
    "set the variable RAILS_MASTER_KEY to what config/master.key holds, or SECRET_KEY_BASE to a long random text where there is none",
  ],
  [
    [/\bSECRET_KEY\b/, /ImproperlyConfigured|KeyError|UndefinedValueError/],
    "set the variable that Django's settings read SECRET_KEY from to a long random text",
  ],
  [
    [/must set settings\.ALLOWED_HOSTS/],
    "name the site's addresses in ALLOWED_HOSTS of Django's settings, or let them be read from a variable",
  ],
  [
    // Releases of better-sqlite3 before 13, with Node 24.19 and later.
    [/node::RemoveEnvironmentCleanupHook/],
    "a package made of C++ does not fit this release of Node: take the package's newest one, or name another Node in .nvmrc, such as 22",
  ],
  [
    [/127\.0\.0\.1|::1\b|localhost/, /refused/i],
    "it looks for another server, such as its database, inside its own container: set the variable that names its address, such as DATABASE_URL",
  ],
];

export function exitAdvice(lines: readonly string[]): string {
  for (const [signs, advice] of known) {
    const found = lines.find((line) => signs.every((sign) => sign.test(line)));
    if (found !== undefined) return advice.replace("$1", () => signs.at(-1)?.exec(found)?.[1] ?? "");
  }
  return "mend it or its start command";
}
