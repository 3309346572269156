import { telling } from "../docker/telling-lines.ts";

/** Of tini, env and shells, before what they could not run. */
const runner = String.raw`(?:exec:? |env: ['\u2018]?|: (?:line )?\d+: |sh: )`;
const notFound = (name: string) =>
  new RegExp(
    String.raw`${runner}(${name})(?:\\r)?['\u2019]?(?: failed: |: )(?:No such file or directory|not found|command not found)$`,
  );

const writesElsewhere =
  "it may not write to $1, only below /app and /tmp: give the site a volume, or let a variable of the app name a path there";
const path = String.raw`(\/[^\s'"\u2019:]{1,200})`;

/** Debian names the package of a library after it and its version: libGL.so.1 is in libgl1, libatk-1.0.so.0 in libatk1.0-0. */
function packageOf(library: string): string {
  const [, name = "", version = ""] = /^(lib[\w+.-]*?)\.so(?:\.(\d+))?/.exec(library) ?? [];
  const own = name
    .toLowerCase()
    .replace(/-(?=\d)/, "")
    .replaceAll("_", "-");
  return /\d$/.test(own) && version !== "" ? `${own}-${version}` : own + version;
}

function lacksLibrary(library: string): string {
  const named = packageOf(library);
  const probably = named === "" ? "" : `, probably ${named},`;
  return `the image that runs lacks the library ${library}: name its Debian package${probably} in an Aptfile, or install it in the Dockerfile`;
}

const variable = String.raw`([A-Z][A-Z\d]*(?:_[A-Z\d]+)+)`;
const setVariable = "set the site's variable $1";

/** What apps lack at their first start that came up elsewhere, by what one of their lines tells; `$1` is what the last sign found. */
const known: [signs: RegExp[], advice: string | ((found: string) => string)][] = [
  [
    [/exec format error|: \d+: .?ELF.{0,200}not found/i],
    `its program is built for another processor: build it for this host's, ${process.arch}`,
  ],
  [
    // A name with a slash is looked for nowhere else, so the file may well be there.
    [notFound(String.raw`[\w.-]*\/[^\s:']{1,200}`)],
    "there is no $1, or not the program that its first line names, as in a script with Windows line ends: correct it or the start command",
  ],
  [
    [notFound(String.raw`[\w.+-]{1,100}`)],
    "the image has no program $1: install it where the image is built, or correct the start command",
  ],
  [
    [new RegExp(String.raw`${runner}(\/?[^\s:]{1,200})(?: failed)?: Permission denied$`)],
    "$1 is not executable: run chmod +x on it, if it is a program",
  ],
  // Of Node, of Python, of Ruby, and of Go and programs of C.
  [[new RegExp(String.raw`\b(?:EACCES|EROFS)\b[^'"]{0,200}['"]${path}['"]`)], writesElsewhere],
  [
    [new RegExp(String.raw`(?:Permission denied|Read-only file system): ['"]${path}['"]`, "i")],
    writesElsewhere,
  ],
  [
    [new RegExp(String.raw`(?:Permission denied|Read-only file system) @ \S{1,100} - ${path}`)],
    writesElsewhere,
  ],
  [
    [
      new RegExp(
        String.raw`\b(?:mkdir|open|create|cannot \w+ \w+) ['\u2018]?${path}['\u2019]?: (?:permission denied|read-only file system)`,
        "i",
      ),
    ],
    writesElsewhere,
  ],
  [
    [/\bERR_PNPM_UNSUPPORTED_ENGINE\b/],
    "package.json requires another version of pnpm or Node than the image has: correct packageManager or engines there",
  ],
  [
    [
      /Cannot find module '[^']{1,300}\.node'|Could not locate the bindings file|No native build was found for /,
    ],
    "a package lacks its native part, which its install script builds or downloads: let that run, for pnpm by naming the package in onlyBuiltDependencies (from pnpm 11 on in allowBuilds), for Bun in trustedDependencies, and remove ignore-scripts from .npmrc",
  ],
  [
    // The path of a file is its own affair.
    [/Cannot find (?:module|package) '((?:@[\w.-]{1,100}\/)?\w[\w.-]{0,100})/],
    "the image lacks the package $1: list it among dependencies of package.json, because devDependencies are only there for the build",
  ],
  [
    [/No module named '(distutils|imp|pkg_resources|cgi|imghdr|pipes|telnetlib|asyncore|asynchat)\b/],
    "newer Python versions do not include $1: name an older one, such as 3.11, in .python-version, or use newer versions of the packages that import it",
  ],
  [
    [/No module named '([\w.]{1,100})'/],
    "there is no module $1: name the package that has it among the dependencies, or correct the start command",
  ],
  [
    [/cannot load such file -- ([\w./-]{1,100})(?: \(LoadError\))?$/],
    "there is no $1 to load: name the gem that has it in the Gemfile, in no group for development or tests, or correct the start command",
  ],
  // Of the loader, as it tells C, Python, Ruby and Node; and of Python's cffi.
  [
    [
      /error while loading shared libraries: ([^\s:]{1,100}):|\b(lib[^\s:'"/]{1,100}): cannot open shared object file|cannot load library '(lib[^\s']{1,100})'/,
    ],
    lacksLibrary,
  ],
  [
    [/Missing `secret_key_base`|Missing encryption key to decrypt|MessageEncryptor::InvalidMessage/],
    "set the variable RAILS_MASTER_KEY to the contents of config/master.key, or SECRET_KEY_BASE to a long random text if there is none",
  ],
  [
    [/\bSECRET_KEY\b/, /ImproperlyConfigured|KeyError|UndefinedValueError/],
    "set the variable that Django's settings read SECRET_KEY from to a long random text",
  ],
  [
    [/must set settings\.ALLOWED_HOSTS/],
    "name the site's addresses in ALLOWED_HOSTS in Django's settings, or read them from a variable",
  ],
  [
    // Releases of better-sqlite3 before 13, with Node 24.19 and later.
    [/node::RemoveEnvironmentCleanupHook/],
    "a C++ package does not work with this Node version: use the package's newest version, or name another Node version in .nvmrc, such as 22",
  ],
  [
    // pnpm goes on with a warning of the same words.
    [new RegExp(String.raw`^error .*Failed to replace env in config: \$\{${variable}\}`)],
    `${setVariable} with the scope both, because the package manager that starts it reads it`,
  ],
  // Of Python, Ruby and Spring, and as most say it themselves.
  [
    [
      new RegExp(
        `\\bKeyError: '${variable}'|key not found: "${variable}"|Could not resolve placeholder '${variable}'`,
      ),
    ],
    setVariable,
  ],
  [
    [
      /\benv(?:ironment)? ?var/i,
      /missing|required|must be|\bset the\b|unset|undefined|not (?:set|found|defined|present|provided)/i,
      new RegExp(`\\b${variable}\\b`),
    ],
    setVariable,
  ],
  // A name without a dot, of Node, Go, PostgreSQL's library, MySQL's, Java, PHP, Python's Redis and Prisma.
  [
    [
      /getaddrinfo (?:ENOTFOUND|EAI_AGAIN) ([\w-]{1,60})(?![\w.-])|\blookup ([\w-]{1,60})(?: on \S{1,60})?: |host name "([\w-]{1,60})" to address|Unknown (?:MySQL )?server host '([\w-]{1,60})'|UnknownHostException: ([\w-]{1,60})(?![\w.-])|getaddrinfo for ([\w-]{1,60}) failed|connecting to ([\w-]{1,60}):\d+\. (?:Temporary failure|Name or service)|reach database server at `?(?!localhost)([\w-]{1,60}):\d/,
    ],
    "no server is called $1 where it runs, unlike in Docker Compose: set the variable that names its address",
  ],
  [
    [/127\.0\.0\.1|::1\b|localhost/, /refused|Can't reach/i],
    "it looks for another server, such as its database, inside its own container: set the variable that names its address, such as DATABASE_URL",
  ],
];

/** For one that ended well. */
export const goOn =
  "let it keep running, in the foreground, or let a schedule or a command run it if it is meant to end";

const mostShown = 15;
const mostCharacters = 1500;

/** The last of its lines that tell something. */
export const lastSaid = (lines: readonly string[]): string =>
  telling(lines).slice(-mostShown).join(" | ").slice(-mostCharacters);

export function exitAdvice(lines: readonly string[]): string {
  for (const [signs, advice] of known) {
    const found = lines.find((line) => signs.every((sign) => sign.test(line)));
    if (found === undefined) continue;
    const named = signs.at(-1)?.exec(found)?.slice(1).find(Boolean) ?? "";
    return typeof advice === "string" ? advice.replace("$1", () => named) : advice(named);
  }
  return "correct it or its start command";
}
