import type { ProofRecord } from "./domain-check.ts";
import { dayOf } from "./times.ts";

type Mail = { subject: string; text: string };
type Named = { name: string; site: string; record: ProofRecord };

const recordLine = ({ type, name, value }: ProofRecord) => `  ${name}  ${type}  ${value}`;

/** @param releaseAt when the name is released unless one of its records returns */
export const lossMail = ({ name, site, record, releaseAt }: Named & { releaseAt: Date }): Mail => ({
  subject: `${name} no longer leads to ${site}`,
  text: `The ownership record of ${name} is gone, and its address no longer leads to your site ${site}.

If this does not change, the name is released on ${dayOf(releaseAt)}. To keep it, point its address here again, or restore this record:

${recordLine(record)}

If you no longer need the name, you do not have to do anything.`,
});

/** @param problems what is wrong with its records, and how they should be */
export const leftMail = ({
  name,
  site,
  target,
  problems,
}: Omit<Named, "record"> & { target: string; problems: readonly string[] }): Mail => ({
  subject: `${name} leads to a host that ${site} has left`,
  text: `Your site ${site} has moved to another host, and ${name} still leads to the previous one, which no longer serves it:

${problems.map((problem) => `  ${problem}`).join("\n")}

Change this at your DNS provider. A CNAME or ALIAS record to ${target} follows every move; A and AAAA records have to be changed after each.`,
});

type Renewed = Pick<Named, "name" | "site"> & { notAfter: Date };

/** @param reasons why, as far as it is known */
export const renewalMail = ({
  name,
  site,
  notAfter,
  reasons,
}: Renewed & { reasons: readonly string[] }): Mail => ({
  subject: `The certificate of ${name} could not be renewed`,
  text: `The certificate of ${name}, a domain of your site ${site}, is valid until ${dayOf(notAfter)}. It should have been renewed by now. Once it has expired, browsers will refuse to open the site under this name.

${reasons.length > 0 ? reasons.map((reason) => `  ${reason}`).join("\n") : "The certificate authority has given no reason."}

Berth keeps trying. If the reason is one that you can remove, remove it, then renew the certificate on the page of the site's domains. Otherwise ask the operator.`,
});

export const renewedMail = ({ name, site, notAfter }: Renewed): Mail => ({
  subject: `The certificate of ${name} has been renewed`,
  text: `The certificate of ${name}, a domain of your site ${site}, could not be renewed for a while. It has been renewed now and is valid until ${dayOf(notAfter)}.`,
});

export const releaseMail = ({ name, site, record }: Named): Mail => ({
  subject: `${name} was released`,
  text: `Neither the ownership record of ${name} nor its address led to your site ${site} for a week, so the site is no longer served under this name.

To use it again, create this record and verify the domain:

${recordLine(record)}`,
});

export const takenMail = ({ name, site, record }: Named): Mail => ({
  subject: `${name} is now served by another site`,
  text: `Another site proved that it owns ${name}, and the record of your site ${site} was gone. Your site is no longer served under this name.

If the name is yours, restore this record, remove the other one, and verify the domain again:

${recordLine(record)}`,
});
