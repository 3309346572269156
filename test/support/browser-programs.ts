/** What runs the pages' browser (test/e2e/browser.ts), by the Debian package that has it. */
export const browserPrograms = {
  "/usr/lib/chromium/chromium-headless-shell": "chromium-headless-shell",
  // Keeps it from seeing what Docker does to the machine's networks.
  "/usr/bin/bwrap": "bubblewrap",
};
