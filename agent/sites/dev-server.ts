import { basename } from "node:path";
import { devServer } from "../image-build/detect/package-json.ts";

/** Where development servers listen by default that are seldom started by a command of their own. */
const ports: Record<number, string> = { 1234: "Parcel", 4200: "Angular", 5173: "Vite", 19006: "Expo" };

/** The development server among these processes or behind these ports; null: none that is known. */
export function devServerOf(commands: readonly string[][], listening: readonly number[]): string | null {
  for (const command of commands)
    for (const text of [command.at(-1) ?? "", ...fromScripts(command)]) {
      // What comes before its name may be a variable with its value.
      const found = devServer.exec(text)?.groups?.["name"];
      if (found !== undefined) return found;
    }
  const port = listening.find((one) => one in ports);
  return port === undefined ? null : (ports[port] ?? null);
}

/** `node /app/node_modules/.bin/vite --host` → `node …`, `vite --host`, `--host`. */
const fromScripts = (command: readonly string[]): string[] =>
  command.slice(0, 3).map((word, at) => [basename(word), ...command.slice(at + 1)].join(" "));
