import { manifestText, pythonManifests } from "./requirements.ts";
import { gitPackages, type Sources, type SystemPackages } from "./sources.ts";

/** Whether a file in which a Python app names its packages has a line like this. */
export const isInManifest = (sources: Sources, sign: RegExp): boolean =>
  pythonManifests.some((file) => sign.test(manifestText(sources, file)));

/** Whether the manifests name a package as a direct dependency. */
export function dependsOn(sources: Sources, name: string): boolean {
  const written = new RegExp(`(?:^|["'])[ \\t]*["']?${name.replace("-", "[-_]")}(?![\\w-])`, "im");
  return isInManifest(sources, written);
}

/** `name @ git+https://…`, and a table's `git = "…"`. */
const takesFromGit = (sources: Sources): boolean =>
  isInManifest(sources, /^[^#\n]*\bgit\+\w+:|^[ \t]*git[ \t]*=|[{,][ \t]*git[ \t]*=/m);

/** What packages are compiled with, are linked to, or call. */
const systemPackagesOf: (SystemPackages & { name: string })[] = [
  { name: "psycopg2", build: ["gcc", "libc6-dev", "libpq-dev"], run: ["libpq5"] },
  {
    name: "mysqlclient",
    build: ["gcc", "libc6-dev", "pkg-config", "default-libmysqlclient-dev"],
    run: ["libmariadb3"],
  },
  ...[
    { name: "opencv-python", libraries: ["libgl1", "libglib2.0-0"] },
    { name: "weasyprint", libraries: ["libpango-1.0-0", "libpangoft2-1.0-0", "libharfbuzz-subset0"] },
    { name: "python-magic", libraries: ["libmagic1"] },
    // Commands of a build, such as Django's, import the app.
  ].map(({ name, libraries }) => ({ name, build: libraries, run: libraries })),
  { name: "pdf2image", build: [], run: ["poppler-utils"] },
  { name: "pydub", build: [], run: ["ffmpeg"] },
  { name: "pytesseract", build: [], run: ["tesseract-ocr"] },
];

/** Debian's, of what the app depends on. */
export function systemPackages(sources: Sources): SystemPackages {
  const found = systemPackagesOf.filter(({ name }) => dependsOn(sources, name));
  return {
    build: [
      ...new Set([...found.flatMap(({ build }) => build), ...(takesFromGit(sources) ? gitPackages : [])]),
    ],
    run: found.flatMap(({ run }) => run),
  };
}
