import type { Child } from "hono/jsx";
import { Heading, Tabs } from "../kit/parts.tsx";
import type { View } from "../kit/screen.ts";

const tabs = [
  { href: "/operator", label: "Overview" },
  { href: "/operator/hosts", label: "Hosts" },
  { href: "/operator/accounts", label: "Accounts" },
  { href: "/operator/sites", label: "Sites and databases" },
  { href: "/operator/queue", label: "Queue" },
  { href: "/operator/money", label: "Money" },
  { href: "/operator/plans", label: "Plans" },
  { href: "/operator/system", label: "System" },
  { href: "/operator/settings", label: "Settings" },
] as const;

/** A page of the operator's console. Each of its operations is for operators only. */
export const operatorFrame = (current: (typeof tabs)[number]["href"], body: Child, title?: string): View => ({
  title: title ?? tabs.find(({ href }) => href === current)?.label ?? "Operator",
  section: "operator",
  crumbs: [{ label: "Operator", href: "/operator" }],
  about: ["account"],
  body: (
    <>
      <Heading title={title ?? "Operator"} />
      <Tabs label="Operator" tabs={tabs} current={current} />
      {body}
    </>
  ),
});

/** A search that an address keeps, so that it works without a script. */
export const Search = ({ label, value, children }: { label: string; value: string; children?: Child }) => (
  <form method="get" class="filters" role="search">
    <label class="hidden-text" for="search">
      {label}
    </label>
    <input
      id="search"
      name="search"
      type="search"
      autocapitalize="none"
      spellcheck={false}
      value={value}
      placeholder={label}
      maxlength={100}
    />
    {children}
    <button type="submit">Search</button>
  </form>
);

/** The address of a page with what is given of these. */
export const searched = (path: string, given: Record<string, string>): string => {
  const query = new URLSearchParams(Object.entries(given).filter(([, value]) => value !== "")).toString();
  return query === "" ? path : `${path}?${query}`;
};
