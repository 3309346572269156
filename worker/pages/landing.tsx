import type { Pack } from "../../protocol/api/packs.ts";
import { brandName } from "./kit/brand.tsx";
import { Layout } from "./kit/layout.tsx";
import { packText } from "./kit/plans.tsx";
import { money } from "./money.ts";

const tells = (): readonly [title: string, text: string][] => [
  [
    "From a repository to an address",
    `Name a Git repository, an image or a Dockerfile. ${brandName()} finds out how it is built, builds it, and puts it online with HTTPS. A push deploys again; the version before serves until the new one answers.`,
  ],
  [
    "Failures that say what to do",
    "A deployment that fails names the reason and the remedy, such as the port that the app really listens on. Going back to an earlier version takes seconds.",
  ],
  [
    "Databases with proven backups",
    "PostgreSQL, MariaDB and Redis on a private network beside your sites. Every backup is tried by restoring it, so that it works when it must.",
  ],
  [
    "A price that you know before",
    "Each site and database is paid for one term in advance, by invoice. There is no usage bill, and nothing is deleted without a warning.",
  ],
  [
    "An assistant that asks first",
    "It reads logs and settings and finds the cause. What it changes, it does only after you confirm exactly that.",
  ],
  [
    "An API for all of it",
    "Whatever the dashboard does, the API and the command line do too. The same service runs on your own machines.",
  ],
];

const Prices = ({ title, packs }: { title: string; packs: readonly Pack[] }) => {
  if (packs.length === 0) return null;
  const most = Math.max(...packs.flatMap(({ terms }) => terms.map(({ discountPercent }) => discountPercent)));
  return (
    <section>
      <h2>{title}</h2>
      <div class="tiles">
        {packs.map((pack) => (
          <div class="card">
            <div class="body">
              <h3>{pack.name}</h3>
              <p class="figure">{money(pack.amountCents, pack.currency)}</p>
              <p class="soft">a month</p>
              <p>{packText(pack)}</p>
            </div>
          </div>
        ))}
      </div>
      {most > 0 && <p class="soft small">{`Up to ${most} % less for longer terms.`}</p>}
    </section>
  );
};

/** What Berth is and costs, for people who are signed out. */
export const LandingPage = ({ packs, signUp }: { packs: readonly Pack[]; signUp: boolean }) => (
  <Layout title="Hosting that people own" signedIn={false} bare>
    <div class="landing">
      <section class="lead">
        <h1>Hosting that people own</h1>
        <p>
          {brandName()} runs your web applications and databases in containers: from a Git repository to a
          live address in minutes, for a fixed price, on machines that you can own yourself.
        </p>
        <div class="buttons">
          {signUp ? (
            <a class="button primary" href="/sign-up">
              Create an account
            </a>
          ) : (
            <a class="button primary" href="/sign-in">
              Sign in
            </a>
          )}
          {signUp && (
            <a class="button" href="/sign-in">
              Sign in
            </a>
          )}
          <a class="button" href="/docs">
            Read the docs
          </a>
        </div>
      </section>
      <section>
        <h2>How it works</h2>
        <div class="tiles">
          {tells().map(([title, text]) => (
            <div class="card">
              <div class="body">
                <h3>{title}</h3>
                <p class="soft">{text}</p>
              </div>
            </div>
          ))}
        </div>
      </section>
      <Prices title="Sites" packs={packs.filter(({ kind }) => kind === "site")} />
      <Prices title="Databases" packs={packs.filter(({ kind }) => kind === "database")} />
    </div>
  </Layout>
);
