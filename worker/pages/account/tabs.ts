export const accountTabs = [
  { href: "/account", label: "Profile and password" },
  { href: "/account/keys", label: "API keys" },
] as const;
