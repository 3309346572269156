import { output } from "./terminal.ts";

/** The program that opens an address on this system. The address is an argument of its own, never part of a command line. */
export const opener = (platform: NodeJS.Platform, url: string): [string, string[]] =>
  platform === "darwin"
    ? ["open", [url]]
    : platform === "win32"
      ? ["rundll32", ["url.dll,FileProtocolHandler", url]]
      : ["xdg-open", [url]];

/** Opens a page if there is a person at a screen. Without one, nothing happens: the address is printed anyway. */
export async function openInBrowser(url: string): Promise<void> {
  if (!output.isInteractive || !/^https?:\/\//.test(url)) return;
  if (process.platform === "linux" && !process.env["DISPLAY"] && !process.env["WAYLAND_DISPLAY"]) return;
  const [program, args] = opener(process.platform, url);
  const { spawn } = await import("node:child_process");
  const child = spawn(program, args, { stdio: "ignore", detached: true, windowsHide: true });
  child.once("error", () => undefined);
  child.unref();
}
