export const accountTabs = [
  { href: "/account", label: "Profile and password" },
  { href: "/account/two-factor", label: "Two-step sign-in" },
  { href: "/account/sessions", label: "Browsers" },
  { href: "/account/notifications", label: "Notifications" },
  { href: "/account/keys", label: "API keys" },
] as const;
