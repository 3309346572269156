import type { Child } from "hono/jsx";
import type { Pack } from "../../protocol/api/packs.ts";
import { Layout } from "./layout.tsx";
import { money } from "./money.ts";

type SourceProps = { type: string; title: string; open?: boolean; packs: Pack[]; children: Child };

const Source = ({ type, title, open = false, packs, children }: SourceProps) => (
  <details open={open}>
    <summary>{title}</summary>
    <form method="post" action="/sites">
      <input type="hidden" name="deployType" value={type} />
      <label>
        Name
        <input name="name" required pattern="[a-z0-9\-]{1,63}" maxlength={63} autocomplete="off" />
        <span class="soft">a–z, 0–9 and -</span>
      </label>
      {children}
      <label>
        Port the app listens on
        <input name="port" type="number" min={1} max={65535} value="3000" />
      </label>
      <label>
        Pack
        <select name="packId">
          {packs.map((pack) => (
            <option value={pack.id}>
              {`${pack.name}: ${money(pack.amountCents, pack.currency)} per month, ${pack.memoryMb} MB of memory, ${pack.cpuMilli / 1000} cores`}
            </option>
          ))}
        </select>
      </label>
      <label>
        Paid for
        <select name="billingTerm">
          {packs[0]?.terms.map(({ months, discountPercent }) => (
            <option value={String(months)}>
              {`${months} ${months === 1 ? "month" : "months"}${discountPercent > 0 ? `, ${discountPercent} % off` : ""}`}
            </option>
          ))}
        </select>
      </label>
      <button type="submit">Continue to the invoice</button>
    </form>
  </details>
);

/** Every form leads to an invoice, since nothing runs before it is paid. */
export const NewSitePage = ({ packs }: { packs: Pack[] }) => (
  <Layout title="New site" signedIn>
    <h1>New site</h1>
    <p>Your site will be built and started as soon as its invoice is paid.</p>
    <Source type="github" title="From a Git repository" open packs={packs}>
      <label>
        Repository
        <input name="githubUrl" required maxlength={300} placeholder="github.com/owner/repository" />
      </label>
      <label>
        Branch
        <input name="branch" maxlength={200} placeholder="the repository's default branch" />
      </label>
      <label>
        Access token for a private repository
        <input name="gitToken" type="password" maxlength={500} autocomplete="off" />
      </label>
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
