export const accountTabs = [
  { href: "/account", label: "Profile and password" },
  { href: "/account/sessions", label: "Browsers" },
  { href: "/account/notifications", label: "Notifications" },
  { href: "/account/keys", label: "API keys" },
] as const;
