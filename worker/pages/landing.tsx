import type { Pack } from "../../protocol/api/packs.ts";
import { brandName } from "./kit/brand.tsx";
import { Layout } from "./kit/layout.tsx";
import { packText } from "./kit/plans.tsx";
import { money } from "./money.ts";

const tells = (): readonly [title: string, text: string][] => [
  [
    "From a repository to an address",
    `Enter a Git repository, an image or a Dockerfile. ${brandName()} detects how to build it, builds it, and puts it online with HTTPS. A push deploys again; the previous version keeps serving until the new one responds.`,
  ],
  [
    "Failures that say what to do",
    "A failed deployment names the cause and the fix, such as the port that the app actually listens on. Rolling back to an earlier version takes seconds.",
  ],
  [
    "Databases with proven backups",
    "PostgreSQL, MariaDB and Redis on a private network beside your sites. Every backup is test-restored, so that it works when you need it.",
  ],
  [
    "A price you know in advance",
    "Each site and database is paid for one term in advance, by invoice. There are no usage charges, and nothing is deleted without a warning.",
  ],
  [
    "An assistant that asks first",
    "It reads logs and settings and finds the cause. Anything that cannot be undone runs only after you confirm exactly that.",
  ],
  [
    "An API for everything",
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
      {most > 0 && <p class="soft small">{`Up to ${most}% less for longer terms.`}</p>}
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
