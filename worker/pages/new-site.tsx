import type { Child } from "hono/jsx";
import type { Pack } from "../../protocol/api/packs.ts";
import type { SourceInspection } from "../../protocol/api/sources.ts";
import { Layout } from "./kit/layout.tsx";
import { money } from "./money.ts";

/** What was entered before the repository was checked; the token is not shown again. */
export type Entered = Partial<
  Record<"name" | "githubUrl" | "branch" | "rootDir" | "packId" | "billingTerm", string>
>;
export type Checked = { entered: Entered; found: SourceInspection | null; problem: string | null };

type SourceProps = {
  type: string;
  title: string;
  open?: boolean;
  packs: Pack[];
  entered?: Entered;
  port?: number | null;
  children: Child;
};

const Source = ({ type, title, open = false, packs, entered = {}, port, children }: SourceProps) => (
  <details open={open}>
    <summary>{title}</summary>
    <form method="post" action="/sites">
      <input type="hidden" name="deployType" value={type} />
      <label>
        Name
        <input
          name="name"
          required
          pattern="[a-z0-9\-]{1,63}"
          maxlength={63}
          autocomplete="off"
          value={entered.name}
        />
        <span class="soft">a–z, 0–9 and -</span>
      </label>
      {children}
      <label>
        Port the app listens on
        <input name="port" type="number" min={1} max={65535} value={String(port ?? 3000)} />
      </label>
      <label>
        Pack
        <select name="packId">
          {packs.map((pack) => (
            <option value={pack.id} selected={pack.id === entered.packId}>
              {`${pack.name}: ${money(pack.amountCents, pack.currency)} per month, ${pack.memoryMb} MB of memory, ${pack.cpuMilli / 1000} cores`}
            </option>
          ))}
        </select>
      </label>
      <label>
        Paid for
        <select name="billingTerm">
          {packs[0]?.terms.map(({ months, discountPercent }) => (
            <option value={String(months)} selected={String(months) === entered.billingTerm}>
              {`${months} ${months === 1 ? "month" : "months"}${discountPercent > 0 ? `, ${discountPercent} % off` : ""}`}
            </option>
          ))}
        </select>
      </label>
      <button type="submit">Continue to the invoice</button>
    </form>
  </details>
);

const Found = ({ found }: { found: SourceInspection }) => {
  const made = [found.language, found.languageVersion].filter(Boolean).join(" ");
  const rows: [string, string | null][] = [
    ["Branch", found.branch],
    ["Made with", [made, found.framework].filter(Boolean).join(", ")],
    ["Built by", found.builder === "dockerfile" ? "its Dockerfile" : found.packageManager],
    ["Install", found.installCommand],
    ["Build", found.buildCommand],
    ["Start", found.isStatic && found.builder ? "its files are served" : found.startCommand],
    ["Release", found.releaseCommand],
    ["Variables", found.variables.join(", ")],
    ["Databases", found.databases.join(", ")],
    ["Folders with apps", found.rootDirs.join(", ")],
  ];
  return (
    <dl>
      {rows.map(
        ([name, value]) =>
          value && (
            <>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </>
          ),
      )}
    </dl>
  );
};

const Check = ({ found, problem }: Pick<Checked, "found" | "problem">) => (
  <>
    <p class={problem === null ? "note good" : "note warn"} role={problem === null ? "status" : "alert"}>
      {problem ?? "The repository can be built as it is."}
    </p>
    {found?.reachable && <Found found={found} />}
    {found?.notes.map((note) => (
      <p class="soft">{note}</p>
    ))}
  </>
);

/** Every form leads to an invoice, since nothing runs before it is paid. */
export const NewSitePage = ({ packs, checked = null }: { packs: Pack[]; checked?: Checked | null }) => (
  <Layout title="New site" signedIn>
    <h1>New site</h1>
    <p>Your site will be built and started as soon as its invoice is paid.</p>
    {checked && <Check found={checked.found} problem={checked.problem} />}
    <Source
      type="github"
      title="From a Git repository"
      open
      packs={packs}
      entered={checked?.entered ?? {}}
      port={checked?.found?.port ?? null}
    >
      <label>
        Repository
        <input
          name="githubUrl"
          required
          maxlength={300}
          placeholder="github.com/owner/repository"
          value={checked?.entered.githubUrl}
        />
      </label>
      <label>
        Branch
        <input
          name="branch"
          maxlength={200}
          placeholder="the repository's default branch"
          list="branches"
          value={checked?.entered.branch}
        />
        <datalist id="branches">
          {checked?.found?.branches.map((branch) => (
            <option value={branch} />
          ))}
        </datalist>
      </label>
      <label>
        Folder of the app
        <input
          name="rootDir"
          maxlength={300}
          placeholder="the repository's root"
          list="folders"
          value={checked?.entered.rootDir}
        />
        <datalist id="folders">
          {checked?.found?.rootDirs.map((folder) => (
            <option value={folder} />
          ))}
        </datalist>
      </label>
      <label>
        Access token for a private repository
        <input name="gitToken" type="password" maxlength={500} autocomplete="off" />
        <span class="soft">Not kept by a check: enter it again to create the site.</span>
      </label>
      <button class="small" type="submit" formaction="/sites/new" formnovalidate>
        Check repository
      </button>
    </Source>
    <Source type="image" title="From an image" packs={packs}>
      <label>
        Image
        <input name="image" required maxlength={300} placeholder="registry.example.com/app:1" />
      </label>
    </Source>
    <Source type="dockerfile" title="From a Dockerfile" packs={packs}>
      <label>
        Dockerfile
        <textarea name="dockerfile" required rows={10} maxlength={100_000} spellcheck={false} />
      </label>
    </Source>
  </Layout>
);
