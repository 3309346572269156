import type { Domain } from "../../../protocol/api/domains.ts";
import { DomainCreate } from "../../../protocol/api/domains.ts";
import type { Site } from "../../../protocol/api/sites.ts";
import { isWildcard } from "../../../protocol/wildcards.ts";
import { call } from "../../api/call.ts";
import { invalid } from "../../domain/app-error.ts";
import { displayName, isApex, pairOf } from "../../domain/domain-names.ts";
import { parsed } from "../../domain/parsed.ts";
import { issuesWildcards } from "../../jobs/certificates/reconcile.ts";
import { Act, Check, Field, Form, Submit } from "../kit/form.tsx";
import { Card, Copied, Day, Empty, Head, Live, Status, Time } from "../kit/parts.tsx";
import type { Asked, Done, Fields, Screen } from "../kit/screen.ts";
import type { Word } from "../kit/words.ts";
import { ProviderHints } from "./dns-providers.tsx";
import { siteFrame } from "./frame.tsx";

const words: Record<Domain["status"], Word> = {
  PENDING_VERIFICATION: { tone: "warn", label: "Prove that it is yours" },
  VERIFIED: { tone: "busy", label: "Proved, not reachable yet" },
  ACTIVE: { tone: "good", label: "In service" },
  ERROR: { tone: "bad", label: "Needs attention" },
};

type DnsRecord = { type: string; name: string; value: string; hint: string };

/** The records to create, in the words of DNS. `above`: the proof is that of another name. */
function recordsOf({ domain, record, target, status }: Domain, above = false): DnsRecord[] {
  const proof: DnsRecord = {
    ...record,
    hint: above
      ? "The same record as above: create it once."
      : `Proves that the name is yours${isWildcard(domain) ? ", and renews its certificate: keep it" : ""}.`,
  };
  const address: DnsRecord = isApex(domain)
    ? {
        type: "ALIAS",
        name: domain,
        value: target,
        hint: "At the root of a zone: ALIAS, ANAME or a flattened CNAME, whichever your DNS offers. Without any of them, an A record with the target's address.",
      }
    : {
        type: "CNAME",
        name: domain,
        value: target,
        hint: isWildcard(domain)
          ? "Leads every name below to this site."
          : "Leads visitors to this site. A proxy or CDN of yours may answer at the name if it leads to this target.",
      };
  return status === "PENDING_VERIFICATION" ? [proof, address] : [address];
}

const Records = ({ domain, above }: { domain: Domain; above: boolean }) => (
  <table class="records roomy">
    <Head columns={["Type", "Name", "Value"]} />
    <tbody>
      {recordsOf(domain, above).map(({ type, name, value, hint }) => (
        <tr>
          <td>
            <strong>{type}</strong>
          </td>
          <td>
            <Copied text={name} of={`the name of the ${type} record`} />
            <span class="hint">{hint}</span>
          </td>
          <td class="room">
            <Copied text={value} of={`the value of the ${type} record`} />
          </td>
        </tr>
      ))}
    </tbody>
  </table>
);

const Certificate = ({ domain: { certificate } }: { domain: Domain }) =>
  certificate === null ? null : (
    <p class="small">
      {certificate.notAfter !== null && (
        <>
          Certificate from {certificate.issuer ?? "its authority"}, valid until{" "}
          <Day at={certificate.notAfter} />. It renews automatically.
        </>
      )}{" "}
      {certificate.error !== null && <span class="bad">{certificate.error}</span>}
    </p>
  );

const Buttons = ({
  domain,
  isPrimary,
  canBePrimary,
}: {
  domain: Domain;
  isPrimary: boolean;
  canBePrimary: boolean;
}) => {
  const values = { domain: domain.domain };
  const button = (id: string, label: string, kind?: "danger" | "ghost") => (
    <Act
      id={id}
      of={domain.domain}
      label={label}
      about={domain.displayName}
      values={values}
      {...(kind && { kind })}
    />
  );
  return (
    <>
      {domain.status !== "ACTIVE" && button("check", "Check now")}
      {domain.status === "ACTIVE" &&
        domain.certificate !== null &&
        button("renew", "Renew certificate", "ghost")}
      {canBePrimary && !isPrimary && button("primary", "Make primary", "ghost")}
      {isPrimary && button("no-primary", "No longer primary", "ghost")}
      {button("remove", "Remove", "danger")}
    </>
  );
};

/** A problem, where the API tells of a request to send, with the button that sends it. */
const told = ({ code, message }: Domain["problems"][number]): string =>
  code === "not_looked_at" ? message.replace("when you verify it", "when you press Check now") : message;

const DomainCard = ({ domain, site }: { domain: Domain; site: Site }) => {
  const isPrimary = site.ingress.primaryDomain === domain.domain;
  const before = site.domains.slice(0, site.domains.indexOf(domain));
  const above = before.some(
    ({ status, record: { name, value } }) =>
      status === "PENDING_VERIFICATION" && name === domain.record.name && value === domain.record.value,
  );
  return (
    <Card
      title={
        <span>
          {domain.displayName} {isPrimary && <span class="chip">primary</span>}{" "}
          {domain.redirectTo !== null && (
            <span class="chip">redirects to {displayName(domain.redirectTo)}</span>
          )}
        </span>
      }
      end={<Status {...words[domain.status]} />}
    >
      {domain.status !== "ACTIVE" && (
        <>
          <Records domain={domain} above={above} />
          <ProviderHints domain={domain} names={recordsOf(domain).map(({ name }) => name)} />
        </>
      )}
      <div class="body">
        {domain.problems.length === 1 && domain.problems.map((problem) => <p>{told(problem)}</p>)}
        {domain.problems.length > 1 && (
          <ul class="found">
            {domain.problems.map((problem) => (
              <li>{told(problem)}</li>
            ))}
          </ul>
        )}
        {domain.status === "ACTIVE" && domain.problems.length === 0 && (
          <p>
            Visitors reach the site at{" "}
            {isWildcard(domain.domain) ? (
              `every name below ${domain.displayName.slice(2)}`
            ) : (
              <a href={`${new URL(site.url).protocol}//${domain.domain}`} rel="noreferrer">
                {domain.displayName}
              </a>
            )}
            .
          </p>
        )}
        <Certificate domain={domain} />
        {domain.releaseAt !== null && (
          <p class="bad small">
            Its records are gone: the name is released on <Day at={domain.releaseAt} />.
          </p>
        )}
        <p class="soft small">
          {domain.checkedAt !== null && (
            <>
              Last checked <Time at={domain.checkedAt} />.
            </>
          )}{" "}
          {domain.status !== "ACTIVE" &&
            (domain.nextCheckAt === null ? (
              "We check again automatically within a minute."
            ) : (
              <>
                We check again automatically, next <Time at={domain.nextCheckAt} />.
              </>
            ))}
        </p>
        <div class="form-end row">
          <Buttons
            domain={domain}
            isPrimary={isPrimary}
            canBePrimary={
              domain.verifiedAt !== null && domain.redirectTo === null && !isWildcard(domain.domain)
            }
          />
        </div>
      </div>
    </Card>
  );
};

/** A name as people paste it: with a scheme, a path or a port. */
const pasted = (typed: string): string =>
  typed
    .trim()
    .replace(/^[a-z]+:\/\//i, "")
    .replace(/[/?#][^]*/, "")
    .replace(/:\d+$/, "");

const here = ({ param }: Asked): string => `/sites/${param("id")}/domains`;

/** What was found, in words. */
const foundOf = (domain: Domain): Pick<Done, "said" | "tone"> =>
  domain.status === "ACTIVE"
    ? { said: `${domain.displayName} is in service.` }
    : {
        tone: "warn",
        said: `${domain.displayName}: ${domain.problems[0]?.message ?? "it is proved, and goes into service in a moment."}`,
      };

async function setPrimary(asked: Asked, primaryDomain: string | null): Promise<void> {
  await call(asked.ctx, "patchSite", { id: asked.param("id"), settings: { ingress: { primaryDomain } } });
}

const named = (asked: Asked, fields: Fields) => ({ id: asked.param("id"), name: fields.text("domain") });

export const siteDomains: Screen = {
  path: "/sites/:id/domains",
  async show({ ctx, param }) {
    const site = await call(ctx, "getSite", { id: param("id") });
    const own = site.url.replace(/^https?:\/\//, "");
    return siteFrame(
      site,
      "Domains",
      <div class="split">
        <Live id="domains">
          <div class="stack">
            {site.domains.length === 0 && (
              <Card>
                <Empty
                  title="No domain of your own yet"
                  text={`The site has the address ${own}. Add a domain, and we show which DNS records lead it here.`}
                />
              </Card>
            )}
            {site.domains.map((domain) => (
              <DomainCard domain={domain} site={site} />
            ))}
          </div>
        </Live>
        <Card title="Add a domain">
          <div class="body">
            <Form id="add">
              <Field
                name="domain"
                label="Domain"
                placeholder="www.example.com"
                {...(issuesWildcards(ctx) && { hint: "Or *.example.com for every name below." })}
                required
                maxlength={300}
              />
              <Check
                name="pair"
                label="Also add the other of example.com and www.example.com, which redirects to it"
                checked
              />
              <Submit label="Add domain" kind="primary" />
            </Form>
          </div>
        </Card>
      </div>,
    );
  },
  forms: {
    async add(asked, fields) {
      const name = pasted(fields.text("domain"));
      if (name === "") throw invalid("domain", "Name the domain, such as www.example.com");
      const pair = fields.text("pair") === "true" && !isWildcard(name);
      const { domain } = parsed(DomainCreate, { domain: name });
      // Another name than example.com or www.example.com has no other one, and one that is there already stays as it is.
      const other = pairOf(domain);
      const isThere = (await call(asked.ctx, "listDomains", { id: asked.param("id") })).data.some(
        ({ domain: name }) => name === other,
      );
      const wanted = { domain, ...(pair && other !== null && !isThere && { pair }) };
      const { displayName } = await call(asked.ctx, "createDomain", { id: asked.param("id"), ...wanted });
      return {
        to: here(asked),
        said: `${displayName} is added. Create the records below at your DNS provider; we check for them automatically.`,
      };
    },
    async check(asked, fields) {
      return { to: here(asked), ...foundOf(await call(asked.ctx, "verifyDomain", named(asked, fields))) };
    },
    async renew(asked, fields) {
      const { displayName } = await call(asked.ctx, "renewDomain", named(asked, fields));
      return { to: here(asked), said: `The certificate of ${displayName} is being renewed.` };
    },
    async primary(asked, fields) {
      await setPrimary(asked, fields.text("domain"));
      return {
        to: here(asked),
        said: `Visitors of the site's other names are now redirected to ${displayName(fields.text("domain"))}.`,
      };
    },
    async "no-primary"(asked) {
      await setPrimary(asked, null);
      return { to: here(asked), said: "Names no longer redirect to a primary domain." };
    },
    async remove(asked, fields) {
      const { domain } = await call(asked.ctx, "deleteDomain", named(asked, fields));
      return { to: here(asked), said: `${domain} is removed: the site no longer answers at it.` };
    },
  },
};
