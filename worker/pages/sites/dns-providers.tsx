import type { Child } from "hono/jsx";
import type { Domain } from "../../../protocol/api/domains.ts";
import { isApex, zoneOf } from "../../domain/domain-names.ts";
import { Copied } from "../kit/parts.tsx";

type Provider = {
  name: string;
  /** What its form wants otherwise than others. */
  says?: string;
  /** How the root of a zone leads to a name: it cannot be a CNAME record. */
  root: string;
};

const dot = "End the target of a CNAME record with a dot; without one, your domain is appended to it.";
const parked = "Delete the parking records of the same name first.";
const address = "There is no ALIAS record: create an A record with the target's address";

const providers: readonly Provider[] = [
  {
    name: "AWS Route 53",
    says: "Put the value of a TXT record in double quotes.",
    root: `Alias records can only point to AWS: create an A record with the target's address, and leave the name empty.`,
  },
  {
    name: "Cloudflare",
    says: "Set the proxy status to “DNS only”, or the encryption mode of SSL/TLS to “Full (strict)”: with “Flexible”, visitors are redirected in circles.",
    root: "Create a CNAME record with the name @, which Cloudflare flattens.",
  },
  {
    name: "Gandi",
    says: dot,
    root: "Create an ALIAS record with the name @, and end its target with a dot.",
  },
  { name: "GoDaddy", root: `${address} and the name @.` },
  { name: "Hetzner", says: dot, root: `${address} and the name @.` },
  { name: "IONOS", root: `${address} and the host name @.` },
  { name: "Namecheap", says: parked, root: "Create an ALIAS record with the host @." },
  { name: "OVHcloud", says: dot, root: `${address}, and leave the subdomain empty.` },
  { name: "Porkbun", says: parked, root: "Create an ALIAS record with an empty host." },
];

/** What the forms of DNS providers want: most take a name without the domain, and few lead the root of a zone alike. */
export const ProviderHints = ({ domain, names }: { domain: Domain; names: readonly string[] }) => {
  const zone = zoneOf(domain.domain);
  if (zone === null) return null;
  const isRoot = isApex(domain.domain);
  const entered = (name: string): Child =>
    name === zone ? (
      <>
        <code>@</code>, or nothing,
      </>
    ) : (
      <Copied text={name.slice(0, -zone.length - 1)} of={`the name ${name} without ${zone}`} />
    );
  return (
    <details class="body" id={`providers-${domain.id}`}>
      <summary>How to enter them at your DNS provider</summary>
      <p>
        Most providers append <code>{zone}</code> to a name. Then enter:
      </p>
      <ul>
        {names.map((name) => (
          <li>
            {entered(name)} for <code>{name}</code>
          </li>
        ))}
      </ul>
      <dl>
        {providers.map(({ name, says, root }) => {
          const text = [isRoot && root, says !== dot || !isRoot ? says : undefined].filter(Boolean).join(" ");
          return (
            text !== "" && (
              <>
                <dt>{name}</dt>
                <dd>{text}</dd>
              </>
            )
          );
        })}
      </dl>
    </details>
  );
};
